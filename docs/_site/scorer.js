// How the search orders pages: those that answer a question come before long guides, these before reference and research.
const SHORT = /^(how-to|concepts|tutorial|coming-from|faq)\b/;
const LATER = /^(reference|research|leaderboard|reproduction|scout|growth|architecture|real-contexts|llvm-passes|doors)\b/;
var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
    return score + (SHORT.test(page) ? 12 : LATER.test(page) ? -6 : 0);
  },
  // as Sphinx has them
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
