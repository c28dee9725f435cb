// The inspector: what a person changes goes to Python, what Python answers is drawn. No recall is computed here.

const TYPING = 140; // ms without a key before a query is asked

function buildInspector(view) {
  const { hello, link } = view;
  const state = { query: hello.state.query, knobs: hello.state.knobs, side: "a", selected: null };
  let results = hello.state.results;

  // -- parts -----------------------------------------------------------------------------------------------------
  const query = h("input", {
    type: "search",
    class: "in-query",
    value: state.query,
    placeholder: `Ask ${hello.store}`,
    "aria-label": "Query",
    autocomplete: "off",
    spellcheck: "false",
  });
  const compareButton = h("button", { type: "button", class: "in-compare-button", title: "two settings side by side" }, "Compare A | B");
  const about = h("div", { class: "in-about" });
  const panel = h("div", { class: "in-panel-body" });
  // Beside the hits the settings are always open; above them, where there is no room beside, they fold.
  const fold = h("button", { type: "button", class: "in-fold", "aria-expanded": "false", onclick: () => folded(fold.getAttribute("aria-expanded") === "true") }, "Settings");
  const panelBox = h("div", { class: "in-panel", "data-folded": true }, fold, panel);
  const folded = (closed) => {
    fold.setAttribute("aria-expanded", String(!closed));
    panelBox.toggleAttribute("data-folded", closed);
  };
  const main = h("div", { class: "in-main" });
  const apart = h("div", { class: "in-apart", hidden: true, role: "region" });
  const code = h("code", { class: "in-code-text" });
  const list = hitList({ hello, open: (id) => toggle(id, "a") });
  const pair = comparison({ hello, open: (id, side) => toggle(id, side) });
  const why = whyPanel({ view, apply: remedy, open: (id) => toggle(id, "a", true) });

  fill(
    view.root,
    h("div", { class: "in-top" }, query, compareButton),
    about,
    h("div", { class: "in-body" }, panelBox, h("div", { class: "in-right" }, main, apart, why.node, codeBox())),
  );
  view.root.classList.add("in");
  view.root.style.setProperty("--in-columns", hello.palette.length);

  // -- asking ----------------------------------------------------------------------------------------------------
  const ask = async () => {
    try {
      const { body } = await link.latest("recall", { query: state.query, knobs: state.knobs });
      view.clear();
      results = body;
      drawResults();
      view.settled();
    } catch (error) {
      view.fail(error);
    }
  };
  const typed = debounced(ask, TYPING);
  query.addEventListener("input", () => {
    state.query = query.value;
    typed();
  });
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      typed.cancel();
      ask();
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      view.root.querySelector(".in-hit-row, .in-short-row")?.focus();
    }
  });

  function change(changes, redraw) {
    const old = state.knobs[state.side];
    const weights = changes.weights ? { ...old.weights, ...changes.weights } : old.weights;
    state.knobs = { ...state.knobs, [state.side]: { ...old, ...changes, weights } };
    if (redraw) drawPanel();
    ask();
  }

  function remedy(changes, id) {
    const { without_filters: names = [], ...knobs } = changes;
    const filters = Object.fromEntries(Object.entries(state.knobs.a.filters).filter(([name]) => !names.includes(name)));
    state.side = "a";
    state.selected = { id, side: "a" };
    change({ ...knobs, filters }, true);
  }

  compareButton.addEventListener("click", () => {
    if (state.knobs.b) {
      state.knobs = { a: state.knobs.a };
      state.side = "a";
    } else {
      state.knobs = { a: state.knobs.a, b: { ...state.knobs.a } };
      state.side = "b";
    }
    drawPanel();
    ask();
  });

  // -- opening ---------------------------------------------------------------------------------------------------
  async function toggle(id, side, always = false) {
    const same = state.selected && state.selected.id === id && state.selected.side === side;
    if (same && !always) {
      state.selected = null;
      drawOpened(null);
      list.row(id)?.focus({ preventScroll: true });
      link.ask("close").catch(view.fail);
      return;
    }
    state.selected = { id, side };
    await openSelected(true);
  }

  async function openSelected(scroll = false) {
    if (!state.selected) return;
    try {
      const { body } = await link.latest("open", state.selected);
      if (state.selected?.id !== body.id) return; // closed meanwhile
      view.clear();
      drawOpened(body, scroll);
    } catch (error) {
      view.fail(error);
    }
  }

  // What is opened follows when a knob rests: it takes more work than the order.
  const refresh = debounced(() => {
    openSelected();
    why.again();
  }, 220);

  /** In the list where the memory is one of its hits, and below it where it is not. */
  function drawOpened(found, scroll = false) {
    const parts = found ? detailOf(found, { palette: hello.palette, go: (one) => toggle(one.id, state.selected?.side ?? "a", true), askWhy: why.ask }) : null;
    const inList = !state.knobs.b && found && list.has(found.id);
    list.show(inList ? found.id : null, parts);
    apart.hidden = !found || inList;
    if (!found || inList) fill(apart);
    else {
      const close = h("button", { type: "button", class: "in-small", onclick: () => toggle(found.id, state.selected?.side ?? "a") }, "close");
      replaceKeeping(apart, [h("header", {}, h("code", {}, found.shown_id), found.sum ? ` · rank ${found.sum.rank}` : " · not in this order", close), parts]);
      apart.setAttribute("aria-label", `All about ${found.shown_id}`);
    }
    if (scroll && found) (inList ? list.row(found.id) : apart).scrollIntoView({ block: "nearest" });
    if (state.knobs.b) pair.draw(results, state.selected);
  }

  // -- drawing ---------------------------------------------------------------------------------------------------
  function drawPanel() {
    const both = Boolean(state.knobs.b);
    compareButton.setAttribute("aria-pressed", String(both));
    const tabs = both
      ? choice("Settings of", [["a", "Settings of A", ""], ["b", "Settings of B", ""]], state.side, (side) => {
          state.side = side;
          drawPanel();
        })
      : null;
    const given = JSON.stringify(hello.given) === JSON.stringify(state.knobs[state.side]);
    const reset = h("button", { type: "button", class: "in-small", disabled: given, onclick: () => change({ ...hello.given, weights: { ...hello.given.weights } }, true) }, "as given");
    replaceKeeping(panel, [tabs, knobPanel({ hello, knobs: state.knobs[state.side], change }), h("div", { class: "in-reset" }, reset)]);
  }

  function drawAbout() {
    const side = results.a;
    const found = plural(side.hits.length, "hit");
    const parts = [`${found} of ${plural(side.searched, "memory", "memories")}`, side.mode, lasted(side.milliseconds)];
    if (side.terms.length) parts.push(["looked for ", h("span", { class: "in-terms" }, side.terms.join(" "))]);
    fill(
      about,
      results.blank
        ? h("span", {}, `${plural(hello.facets.memories, "memory", "memories")} in ${hello.store}`)
        : parts.map((part, at) => [at ? " · " : "", part]),
      side.recorded ? h("span", { class: "in-badge", title: "what the channels found when this recall was made" }, "as recorded") : null,
      !results.blank && side.note ? h("div", { class: "in-warning" }, side.note) : null,
    );
    view.say(results.blank ? "no query" : results.b ? `${found} for A, ${plural(results.b.hits.length, "hit")} for B` : found);
  }

  function drawResults() {
    drawAbout();
    code.textContent = results.code;
    if (results.blank) fill(main, h("p", { class: "in-none" }, "Type a query: its hits appear here as you type."));
    else if (results.b) {
      if (!pair.node.isConnected) fill(main, pair.node);
      pair.draw(results, state.selected);
    } else {
      if (!list.node.isConnected) fill(main, list.node);
      list.draw(results.a);
      if (results.a.none) fill(main, h("p", { class: "in-none" }, results.a.none));
    }
    refresh();
    followStore();
  }

  /** Memories have come or gone: what filters can be chosen from may be another. */
  async function followStore() {
    if (results.a.recorded || results.a.searched === hello.facets.memories) return;
    try {
      const { body } = await link.latest("facets");
      hello.facets = body;
      drawPanel();
    } catch (error) {
      view.fail(error);
    }
  }

  function codeBox() {
    const copy = h("button", { type: "button", class: "in-small" }, "copy");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        view.say("copied");
        copy.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(code); // no leave to write to the clipboard: at least it is selected
      }
    });
    return h("details", { class: "in-code", "data-keep": "code" }, h("summary", {}, "As Python"), h("div", { class: "in-code-line" }, code, copy));
  }

  // -- what is set in Python -------------------------------------------------------------------------------------
  link.on("state", (body) => {
    typed.cancel();
    state.query = body.query;
    state.knobs = body.knobs;
    if (!body.knobs.b) state.side = "a";
    if (query.value !== body.query) query.value = body.query;
    const wanted = body.selected;
    if (wanted !== (state.selected?.id ?? null)) {
      state.selected = wanted === null ? null : { id: wanted, side: "a" };
      if (!wanted) drawOpened(null);
    }
    results = body.results;
    view.clear();
    drawPanel();
    drawResults();
    view.settled();
  });

  if (hello.state.selected) state.selected = { id: hello.state.selected, side: "a" };
  drawPanel();
  drawResults();
  return () => {
    typed.cancel();
    refresh.cancel();
  };
}

export default { render: (context) => mount(context, { title: "memlab inspector", build: buildInspector }) };
