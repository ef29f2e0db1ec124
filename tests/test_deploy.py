"""The files that run a server elsewhere: they can be read, and what they start is there. No engine runs them here."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from paretoscout.cli.main import main

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "deploy"


def text_of(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(text_of("docker-compose.yml"))
    return read


def check(words: list[str]) -> click.Context:
    """Refuse words after `paretoscout` that are no command, or options that it does not have."""
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
    return command.make_context(command.name, list(words))


def instructions(name: str) -> dict[str, str]:
    joined = text_of(name).replace("\\\n", " ")
    return dict(line.split(" ", 1) for line in joined.splitlines() if line and not line.startswith("#"))


def test_the_compose_file_starts_what_is_there() -> None:
    services = compose()["services"]
    assert set(services) == {"database", "server", "proxy"}
    server = services["server"]
    started = check(server["command"])
    assert started.params["workers"] == 2
    assert not started.params["demo"]
    assert server["environment"]["PARETOSCOUT_STORAGE"].startswith("postgresql://")
    assert (FOLDER / server["build"]["context"] / server["build"]["dockerfile"]).exists()
    for name in ("database", "server"):
        assert services[name]["healthcheck"]["test"][0] == "CMD"
        assert "ports" not in services[name], "only the proxy can be reached from outside"
    compile(server["healthcheck"]["test"][-1], "healthcheck", "exec")
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"], name
        assert service["pids_limit"] > 0, name
        for needed in service.get("depends_on", {}):
            assert "healthcheck" in services[needed], (name, needed)
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in compose()["volumes"] or (FOLDER / source).exists(), volume
        assert set(service["networks"]) <= set(compose()["networks"])


def test_the_commands_in_comments_are_spelled_right() -> None:
    (made,) = re.findall(r"docker compose run --rm server (.*?)  +#", text_of("docker-compose.yml"))
    check(shlex.split(made))
    (made,) = re.findall(r"bin/paretoscout (token .*)", text_of("paretoscout.service"))
    check(shlex.split(made))


def test_the_image_runs_without_root_and_has_what_it_needs() -> None:
    said = instructions("Dockerfile")
    assert said["USER"] == "paretoscout"
    check([*json.loads(said["ENTRYPOINT"])[1:], *json.loads(said["CMD"])])
    probe = json.loads(said["HEALTHCHECK"].split("CMD ", 1)[1])
    compile(probe[-1], "healthcheck", "exec")
    extras = re.findall(r"\.\[(.*?)\]", text_of("Dockerfile"))[0].split(",")
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in extras:
        assert re.search(rf"^{extra} = \[", project, re.M), extra
    for copied in re.findall(r"^COPY (.*) \S+$", text_of("Dockerfile"), re.M):
        for source in copied.split():
            assert (ROOT / source).exists(), source


def test_images_are_named_by_their_digests() -> None:
    """A digest must be given: there is no default, which would be a name."""
    given = {"database": "POSTGRES_IMAGE", "proxy": "CADDY_IMAGE"}
    services = compose()["services"]
    for name, variable in given.items():
        assert services[name]["image"].startswith(f"${{{variable}:?"), name
    assert services["server"]["build"]["args"]["PYTHON"].startswith("${PYTHON_IMAGE:?")
    said = instructions("Dockerfile")
    assert said["ARG"] == "PYTHON", "no default"
    assert said["FROM"] == "${PYTHON}"
    for name in ("PYTHON", "POSTGRES", "CADDY"):
        assert re.search(rf"#.*\b{name}=\w+:\S+", text_of("docker-compose.yml")), "the comment says how"


def test_the_image_installs_by_hashes_what_the_project_needs() -> None:
    runs = re.findall(r"^RUN pip install (.*)$", text_of("Dockerfile"), re.M)
    assert len(runs) == 2
    assert "--require-hashes" in runs[0]
    assert {"--no-deps", "--no-build-isolation"} <= set(runs[1].split()), "nothing else comes along"
    locked = dict(
        re.findall(r"^([\w.-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}", text_of("requirements.txt"), re.M)
    )
    assert len(locked) == text_of("requirements.txt").count("==") > 20, "each has a hash"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    needed = [*project["project"]["dependencies"], *extras["serve"], *extras["postgres"], *extras["client"]]
    for need in [*needed, *project["build-system"]["requires"]]:
        name = re.match(r"[\w-]+", need)[0]  # type: ignore[index]
        if name == "paretoscout":
            continue
        assert name in locked, name
        for sign, bound in re.findall(r"(>=|<)([\d.]+)", need):
            found, limit = ([int(n) for n in re.findall(r"\d+", text)] for text in (locked[name], bound))
            assert (found >= limit) if sign == ">=" else (found < limit), (need, locked[name])


def test_the_unit_is_sound(tmp_path: Path) -> None:
    unit = text_of("paretoscout.service")
    (start,) = re.findall(r"^ExecStart=(\S+) (.*)$", unit, re.M)
    check(shlex.split(start[1]))
    for setting in (
        "MemoryMax=2G",
        "TasksMax=300",
        "DynamicUser=yes",
        "ProtectSystem=strict",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=\n",
    ):
        assert setting in unit
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    (tmp_path / "paretoscout.service").write_text(unit.replace(start[0], sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "paretoscout.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "paretoscout.service" in line]
    assert not said, said


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Caddyfile", ["flush_interval -1", "reverse_proxy", "max_size 8MiB"]),
        ("nginx.conf", ["proxy_buffering off;", "proxy_set_header Host $http_host;", "client_max_body_size 8m;"]),
    ],
)
def test_proxies_let_live_events_through(name: str, says: list[str]) -> None:
    text = re.sub(r"#.*", "", text_of(name))
    assert text.count("{") == text.count("}")
    for each in says:
        assert each in text
