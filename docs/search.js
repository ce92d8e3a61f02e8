/* Ranks the results of a search (html_search_scorer). Sphinx's index says which pages have a word; `WORD_COUNTS`, which
   docs/conf.py writes, how often. Pages are ranked by BM25, with more for words of the title. */
const _PAGE_WEIGHTS = [
  [/^CHANGELOG$/, 0.3],
  [/^(docs\/)?README$/, 0.5],
  [/^(tests|resources)\//, 0.5],
  [/^config\/keys\//, 0.6],
  [/-reference$/, 0.8],
];

const _queryWords = () => {
  const query = new URLSearchParams(window.location.search).get("q") ?? "";
  const stemmer = new Stemmer();
  return [...new Set(splitQuery(query.toLowerCase()).filter((word) => !stopwords.has(word)))].map((word) =>
    stemmer.stemWord(word),
  );
};

const _bm25 = (word, page) => {
  const counts = WORD_COUNTS.pages;
  const count = counts[page]?.[word] ?? 1;
  const having = Object.values(counts).filter((words) => word in words).length;
  const rarity = Math.log(1 + Object.keys(counts).length / (having + 0.5));
  const length = WORD_COUNTS.lengths[page] / WORD_COUNTS.mean_length;
  return (rarity * count * 2.2) / (count + 1.2 * (0.25 + 0.75 * length));
};

const _textScore = (page, title) => {
  const words = _queryWords();
  if (!words.length || !(page in WORD_COUNTS.pages)) return 0;
  const stemmer = new Stemmer();
  const titleWords = splitQuery(title.toLowerCase()).map((word) => stemmer.stemWord(word));
  const each = words.map((word) => _bm25(word, page) + (titleWords.includes(word) ? 4 : 0));
  return (4 * each.reduce((sum, score) => sum + score, 0)) / words.length;
};

var Scorer = {
  objNameMatch: 20, // the name of a function or class is the query
  objPartialMatch: 0,
  objPrio: { 0: 5, 1: 3, 2: 0 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, _anchor, _description, score, _filename, kind]) => {
    const weight = _PAGE_WEIGHTS.find(([pages]) => pages.test(page))?.[1] ?? 1;
    return weight * (kind === "text" ? _textScore(page, title) : score);
  },
};
