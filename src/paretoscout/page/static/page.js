// What the page does beyond its links: tooltips, changing parts in place, following a study live. Without it all works.
"use strict";
(() => {
  const body = document.body;
  const find = (query, from = document) => from.querySelector(query);
  const all = (query, from = document) => [...from.querySelectorAll(query)];
  const alone = body.hasAttribute("data-alone");
  body.classList.add("js");

  // What the server said of each part: a part is replaced only where that changes.
  const said = new Map();
  const read = (from) => all("[data-part]", from).map((part) => [part.dataset.part, part]);
  for (const [name, part] of read(document)) said.set(name, part.outerHTML);

  let asked = 0;      // numbers the questions to the server: only the latest answer counts
  let answered = 0;   // how many of them are over
  let width = Number(body.dataset.width) || 780;

  // ---- the place of the page: its address, with the width of the chart for the server only ----

  function address(url) {
    const full = new URL(url, location.href);
    if (width !== 780) full.searchParams.set("w", String(width));
    else full.searchParams.delete("w");
    full.hash = "";
    return full;
  }

  // ---- replacing parts ----

  const busy = (part) => {
    const at = document.activeElement;
    if (at && part.contains(at) && (at.tagName === "SELECT" || at.tagName === "INPUT")) return true;
    const chosen = document.getSelection();
    return !!chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode);
  };

  function keyOf(node) { // how an element is found again after its part was replaced
    const part = node.closest("[data-part]");
    if (!part) return null;
    const names = (each) => ["data-key", "data-k", "name"].map((name) => each.getAttribute(name)).join(" ");
    const same = (each) => names(each) === names(node) && each.getAttribute("class") === node.getAttribute("class");
    const place = all(node.tagName, part).filter(same).indexOf(node);
    return () => { const now = find(`[data-part="${part.dataset.part}"]`); return now ? all(node.tagName, now).filter(same)[Math.max(place, 0)] : null; };
  }

  function swap(text, force) {
    const page = new DOMParser().parseFromString(text, "text/html");
    if (!find("main", page)) throw new Error("no page");
    const parts = read(page);
    if (parts.some(([name]) => !find(`[data-part="${name}"]`))) { location.reload(); return; } // its first outcome is in
    const at = document.activeElement;
    const again = at && at !== body ? keyOf(at) : null;
    for (const [name, part] of parts) {
      const now = find(`[data-part="${name}"]`);
      const html = part.outerHTML;
      if (said.get(name) === html) continue;
      if (busy(now) && !(force && now.contains(at))) continue; // another time
      said.set(name, html);
      now.replaceWith(document.adoptNode(part));
    }
    document.title = page.title;
    body.dataset.event = page.body.dataset.event || "";
    if (again && !document.contains(at)) { const now = again(); if (now) now.focus({ preventScroll: true }); }
    sift();
    cool();
  }

  async function go(url, push, force) {
    const mine = ++asked;
    const target = new URL(url, location.href);
    try {
      const reply = await fetch(address(target), { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (reply.redirected && new URL(reply.url).pathname !== target.pathname) { location.assign(reply.url); return; }
      if (!reply.ok) throw new Error(String(reply.status));
      const text = await reply.text();
      if (mine !== asked) return;
      swap(text, force);
      found();
      if (push) {
        target.searchParams.delete("w");
        target.hash = "";
        if (push === "quietly") history.replaceState(null, "", target); else history.pushState(null, "", target);
      }
    } catch (problem) {
      if (mine !== asked) return;
      if (push && push !== "quietly") location.assign(url);
      else lost();
    } finally {
      answered++;
      if (later || (!since && newest > Number(body.dataset.event || newest))) { later = false; refresh(); }
    }
  }

  // ---- clicks that change only a part ----

  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest("a[data-swap]");
    const row = link ? null : event.target.closest(".opts tbody tr[data-k]");
    if (!link && !row) return;
    if (row && (event.target.closest("a, button, input") || String(document.getSelection()))) return;
    const href = (link || find("a.name", row)).getAttribute("href");
    if (alone) { show(href.slice(1), event); return; }
    event.preventDefault();
    go(href, true, true).then(() => { if (row || link.classList.contains("name")) reveal(); });
  });

  function show(id, event) { // in one file
    const chosen = document.getElementById(id);
    if (!chosen) return;
    event.preventDefault();
    history.replaceState(null, "", `#${id}`);
    for (const each of all(".why")) each.hidden = each !== chosen;
    chosen.classList.add("first");
    for (const each of all(".sel")) each.classList.remove("sel");
    for (const each of all(`[data-k="${chosen.dataset.k}"]`)) if (each.matches("tr, .pt")) each.classList.add("sel");
    reveal();
  }

  function reveal() {
    const why = find(".whys");
    if (!why) return;
    const place = why.getBoundingClientRect();
    if (place.bottom < 80 || place.top > innerHeight - 80) why.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("change", (event) => {
    const select = event.target.closest("select[data-go]");
    if (!select || alone) return;
    const form = select.form;
    const other = { x: "y", y: "x" }[select.name];
    if (other && form.elements[other].value === select.value) { // the two change places
      const was = all("option", select).find((each) => each.defaultSelected);
      if (was) form.elements[other].value = was.value;
    }
    const url = new URL(form.getAttribute("action") || "", location.href);
    url.search = new URLSearchParams(new FormData(form)).toString();
    go(url, true, true);
  });

  addEventListener("popstate", () => { if (!alone) go(location.href, false, true); });

  // ---- the table of one file is sorted here ----

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-sort]");
    if (!button) return;
    const head = button.closest("th"), table = button.closest("table"), column = Number(button.dataset.sort);
    const down = head.getAttribute("aria-sort") === "ascending";
    const value = (row) => { const text = row.cells[column].dataset.v; return text === undefined || text === "" ? null : isNaN(text) ? text.toLowerCase() : Number(text); };
    const rows = all("tbody tr", table).map((row, place) => [value(row), place, row]);
    rows.sort(([a, i], [b, j]) => (a === null ? 1 : b === null ? -1 : a < b ? -1 : a > b ? 1 : 0) * (a === null || b === null ? 1 : down ? -1 : 1) || i - j);
    find("tbody", table).append(...rows.map((each) => each[2]));
    for (const each of all("thead th", table)) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  });

  // ---- pointing at an option: others fade, and what is known of it is shown ----

  let tip = null;

  function cool() {
    for (const each of all(".hotting")) { each.classList.remove("hotting"); for (const mark of all(".hot", each)) mark.classList.remove("hot"); }
    if (tip) { tip.remove(); tip = null; }
  }

  function cell(row, text) { const made = document.createElement("td"); made.textContent = text; row.append(made); }

  function heat(point) {
    cool();
    const k = point.dataset.k;
    for (const drawing of all("svg.plane")) {
      const own = all(`.o[data-k="${k}"]`, drawing);
      if (!own.length) continue;
      drawing.classList.add("hotting");
      for (const each of own) each.classList.add("hot");
    }
    const figure = point.closest(".plot, .multi");
    if (!figure || !point.matches(".pt")) return;
    tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("aria-hidden", "true");
    const row = find(`.opts tr[data-k="${k}"]`);
    const name = document.createElement("b");
    if (row) {
      name.textContent = find(".name", row).textContent;
      const verdict = document.createElement("span");
      verdict.textContent = find(".v", row).innerText.replace(/\s+/g, " ").trim();
      tip.append(name, verdict);
      const values = document.createElement("table");
      for (const each of all("td.e", row)) {
        const line = values.insertRow();
        cell(line, each.dataset.m); cell(line, find("b", each).textContent); cell(line, find("small", each).textContent);
      }
      const line = values.insertRow();
      cell(line, "runs"); cell(line, find("td.n", row).textContent); cell(line, "");
      tip.append(values);
    } else {
      const [first, ...rest] = (point.getAttribute("aria-label") || "").split("; ");
      name.textContent = first;
      tip.append(name, ...rest.flatMap((text) => [document.createTextNode(text), document.createElement("br")]));
    }
    figure.append(tip);
    const at = (find(".ring", point) || point).getBoundingClientRect(), frame = figure.getBoundingClientRect();
    const left = at.right - frame.left + 10, room = frame.width - tip.offsetWidth;
    const x = left > room ? Math.max(at.left - frame.left - tip.offsetWidth - 10, 0) : left;
    const y = Math.min(Math.max(at.top - frame.top - 12, 0), Math.max(frame.height - tip.offsetHeight, 0));
    const rules = tip.style; // set by script: no style attribute in the page, and the policy allows it
    rules.left = `${x}px`; rules.top = `${y}px`;
  }

  const pointed = (event) => event.target.closest && event.target.closest(".pt");
  document.addEventListener("pointerover", (event) => {
    const point = pointed(event);
    const row = point ? null : event.target.closest && event.target.closest(".opts tbody tr[data-k]");
    const named = point || row ? null : event.target.closest && event.target.closest(".names a, .tally a");
    if (point) heat(point); else if (row) heat(row); else if (named) heat(named); else cool();
  });
  document.addEventListener("focusin", (event) => { const point = pointed(event); if (point && point.matches(":focus-visible")) heat(point); });
  document.addEventListener("focusout", (event) => { if (pointed(event)) cool(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") cool();
    const point = pointed(event);
    if (point && event.key === " ") { event.preventDefault(); point.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })); }
  });

  // ---- the width of the chart ----

  let waits = 0;
  function fit() {
    const chart = find("[data-chart]");
    if (!chart || alone) return;
    const wanted = Math.round(Math.min(Math.max(chart.clientWidth, 280), 2400));
    if (Math.abs(wanted - width) < 40) return;
    width = wanted;
    refresh();
  }
  addEventListener("resize", () => { clearTimeout(waits); waits = setTimeout(fit, 150); });

  // ---- live ----

  const stream = body.dataset.events;
  let newest = -1, seen = 0, due = 0, later = false, since = 0, again = 0, pause = 2, ticking = 0;

  function refresh() { // at most once a second, and not while an answer is awaited: that one would not count any more
    if (due) return;
    const wait = Math.max(0, 1000 - (Date.now() - seen));
    due = setTimeout(() => {
      due = 0;
      if (answered < asked) { later = true; return; }
      seen = Date.now();
      if (document.visibilityState === "visible") go(location.href, false, false);
    }, wait);
  }

  function lost() {
    if (!stream && !since) return;
    if (!since) since = Date.now();
    const dot = find(".live");
    if (dot) { dot.classList.add("lost"); dot.classList.remove("still"); dot.lastElementChild.textContent = "connection lost"; }
    said.set("live", "");
    clearTimeout(again);
    pause = Math.min(pause * 2, 60);
    const next = Date.now() + pause * 1000;
    again = setTimeout(connect, pause * 1000);
    clearInterval(ticking);
    const tell = () => {
      const notice = find("#lost");
      if (!notice) return;
      const clock = new Date(since).toISOString().slice(11, 19), left = Math.max(0, Math.ceil((next - Date.now()) / 1000));
      const strong = document.createElement("b"), retry = document.createElement("a");
      strong.textContent = "Not current.";
      retry.textContent = "Try now"; retry.href = location.href;
      retry.addEventListener("click", (event) => { event.preventDefault(); clearTimeout(again); connect(); });
      notice.replaceChildren(strong, ` There was no answer since ${clock} UTC. What you see was true then; verdicts that were reached stay. Next try in ${left} s. `, retry);
      notice.hidden = false;
    };
    tell();
    ticking = setInterval(tell, 1000);
  }

  function found() {
    if (!since) return;
    since = 0; pause = 2;
    clearInterval(ticking); clearTimeout(again);
    const notice = find("#lost");
    if (notice) notice.hidden = true;
    if (stream && !source) connect();
  }

  let source = null;
  function connect() {
    if (source) source.close();
    source = new EventSource(stream);
    source.onopen = () => { if (since) go(location.href, false, false); };
    source.onmessage = (event) => { newest = Math.max(newest, JSON.parse(event.data).number || -1); refresh(); };
    for (const kind of ["events", "event", "change", "update"]) source.addEventListener(kind, refresh);
    source.onerror = () => { source.close(); source = null; lost(); };
  }
  if (stream && "EventSource" in window && !alone) {
    connect();
    addEventListener("pagehide", () => { if (source) source.close(); });
    document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") refresh(); });
  }

  // ---- small things ----

  document.addEventListener("click", (event) => {
    if (event.target.id !== "copy") return;
    const link = find("#link");
    link.select();
    const copied = () => { event.target.textContent = "Copied"; setTimeout(() => { event.target.textContent = "Copy link"; }, 1500); };
    if (navigator.clipboard) navigator.clipboard.writeText(link.value).then(copied, () => {}); else if (document.execCommand("copy")) copied();
  });

  const field = find("#find");
  function sift() { // the list, by what is typed into its field
    if (!field) return;
    const wanted = field.value.trim().toLowerCase();
    for (const row of all(".study")) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    for (const group of all(".group")) group.hidden = !all(".study:not([hidden])", group).length;
  }
  if (field) field.addEventListener("input", sift);

  if (body.classList.contains("wall") && !alone) { // goes through what is undecided
    let turn = 0;
    setInterval(() => {
      const open = all(".tally a.undecided, .pt.undecided");
      if (open.length) go(open[turn++ % open.length].getAttribute("href"), "quietly", true);
    }, 20000);
  }

  if (alone && location.hash.startsWith("#why-")) {
    const chosen = document.getElementById(location.hash.slice(1));
    if (chosen) for (const each of all(".why")) each.hidden = each !== chosen;
  }
  fit();
})();
