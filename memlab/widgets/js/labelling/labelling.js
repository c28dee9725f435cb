// The labeller: one query with its candidates. A mark goes to Python at once; what comes back is drawn.

function buildLabeller(view) {
  const { hello, link } = view;
  const grades = hello.grades;
  let state = hello.state;
  const idOf = `lb-${Math.random().toString(36).slice(2)}`;
  let at = 0; // the candidate that the keys act on

  const title = h("h3", { class: "lb-query", tabindex: "-1" });
  const count = h("span", { class: "lb-count" });
  const filters = h("div", { class: "lb-filters ml-quiet" });
  const picker = h("select", { "aria-label": "Go to query", class: "lb-picker", onchange: () => go(picker.value) });
  const back = h("button", { type: "button", "aria-label": "Previous query", title: "previous query: [", onclick: () => step(-1) }, "‹");
  const next = h("button", { type: "button", "aria-label": "Next query", title: "next query: ]", onclick: () => step(1) }, "›");
  const filled = h("div", { class: "lb-filled" });
  const bar = h("div", { class: "lb-bar", role: "progressbar", "aria-label": "Queries finished", "aria-valuemin": "0" }, filled);
  const about = h("div", { class: "lb-about ml-quiet" });
  const list = h("ol", { class: "lb-list", "aria-label": "Candidates, shuffled" });
  const done = h("div", { class: "lb-done", role: "status" });
  const finish = h("button", { type: "button", class: "ml-primary", onclick: () => leave("finish") });
  const none = h("button", { type: "button", onclick: () => leave("none") }, "None is relevant");
  const clear = h("button", { type: "button", onclick: () => act("clear", {}, "All marks of this query are taken back.") }, "Take all back");
  const text = h("input", { type: "text", class: "lb-new", placeholder: "Add a query", "aria-label": "Add a query", autocomplete: "off" });
  const added = () => {
    if (!text.value.trim()) return;
    const given = text.value;
    text.value = "";
    at = 0;
    act("add", { text: given }, "Query added.").then(() => title.focus());
  };
  const add = h("div", { class: "lb-add" }, onEnter(text, added), h("button", { type: "button", onclick: added }, "Add"));

  fill(
    view.root,
    h("div", { class: "lb-top" },
      h("div", { class: "lb-nav" }, back, picker, next, count),
      bar, about),
    h("div", { class: "lb-ask" }, title, filters),
    list,
    done,
    h("div", { class: "lb-foot" }, h("div", { class: "lb-buttons" }, finish, none, clear), add),
    h("div", { class: "lb-keys ml-quiet" }, keys()),
  );
  view.root.classList.add("lb");
  // In the capture phase and stopped there: the notebook has keys of its own.
  view.root.addEventListener("keydown", pressed);
  link.on("state", (body) => take(body));
  draw(true);

  function keys() {
    const named = grades.map((name, grade) => [String(grade), name]);
    if (grades.length === 2) named.push(["y / n", "yes, no"]);
    const all = [["↑ ↓", "move"], ...named, ["Backspace", "take back"], ["Enter", "finish, next query"], ["[ ]", "other query"]];
    return all.map(([key, meaning]) => h("span", { class: "lb-key" }, h("kbd", {}, key), ` ${meaning}`));
  }

  // -- asking ----------------------------------------------------------------------------------------------------
  async function act(kind, more, said) {
    try {
      const { body } = await link.ask(kind, { query: state.current, ...more });
      view.clear();
      take(body);
      if (said) view.say(said);
      view.settled();
    } catch (error) {
      view.fail(error);
    }
  }

  function take(body) {
    const moved = body.current !== state.current;
    if (moved) at = 0;
    state = body;
    draw(moved);
  }

  function mark(index, relevance, moveOn) {
    const candidate = state.candidates[index];
    if (!candidate) return;
    const wanted = candidate.relevance === relevance ? null : relevance; // the same mark again takes it back
    at = index;
    if (moveOn && wanted !== null && index + 1 < state.candidates.length) at = index + 1;
    const name = wanted === null ? "no mark" : grades[wanted];
    act("mark", { memory: candidate.id, relevance: wanted }, `Candidate ${index + 1}: ${name}.`);
    if (moveOn) focusOn(at);
  }

  async function leave(kind) {
    const before = state.current;
    await act(kind, {});
    if (state.current !== before) {
      view.say(`Next query: ${state.text}`);
      focusOn(0);
    } else if (state.progress.finished === state.progress.queries) {
      view.say("All queries are finished.");
    }
  }

  function go(query) {
    if (query && query !== state.current) act("go", { query }).then(() => view.say(`Query: ${state.text}`));
  }

  function step(by) {
    const names = state.queries.map((query) => query.id);
    go(names[names.indexOf(state.current) + by]);
  }

  // -- keys ------------------------------------------------------------------------------------------------------
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inText = event.target === text || event.target === picker;
    if (inText) return;
    const onButton = event.target.tagName === "BUTTON";
    const key = event.key;
    // A long text that has the focus is scrolled by these.
    if (event.target.classList.contains("lb-text") && /^(Arrow|Page|Home|End| )/.test(key)) return;
    const grade = grades.length === 2 && (key === "y" || key === "n") ? (key === "y" ? 1 : 0) : /^\d$/.test(key) ? Number(key) : null;
    if (grade !== null && grade < grades.length) mark(at, grade, true);
    else if (key === "ArrowDown" || key === "j") focusOn(Math.min(at + 1, state.candidates.length - 1));
    else if (key === "ArrowUp" || key === "k") focusOn(Math.max(at - 1, 0));
    else if (key === "Home") focusOn(0);
    else if (key === "End") focusOn(state.candidates.length - 1);
    else if ((key === "Backspace" || key === "Delete") && state.candidates[at]?.relevance !== null) mark(at, state.candidates[at]?.relevance, false);
    else if (key === "Enter" && !onButton) leave("finish");
    else if (key === "[") step(-1);
    else if (key === "]") step(1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function focusOn(index) {
    at = Math.max(0, index);
    list.querySelectorAll(".lb-card").forEach((card, place) => card.setAttribute("tabindex", place === at ? "0" : "-1"));
    const card = list.children[at];
    card?.focus({ preventScroll: true });
    // The list scrolls, not the notebook.
    if (card) {
      const above = card.offsetTop - list.offsetTop;
      if (above < list.scrollTop) list.scrollTop = above;
      else if (above + card.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = above + card.offsetHeight - list.clientHeight;
    }
  }

  // -- drawing ---------------------------------------------------------------------------------------------------
  function draw(moved) {
    const { progress, queries } = state;
    const names = queries.map((query) => query.id);
    const place = names.indexOf(state.current);
    fill(title, state.text);
    fill(filters, state.filters ? `only ${state.filters}` : "");
    fill(picker, queries.map((query) => h("option", { value: query.id }, `${{ finished: "✓", begun: "…", open: "○" }[query.state]} ${query.shown_id}  ${short(query.text, 60)}`)));
    picker.value = state.current;
    fill(count, `query ${place + 1} of ${queries.length}`);
    back.disabled = place === 0;
    next.disabled = place === queries.length - 1;
    filled.style.setProperty("width", `${(100 * progress.finished) / progress.queries}%`);
    bar.setAttribute("aria-valuemax", progress.queries);
    bar.setAttribute("aria-valuenow", progress.finished);
    const kept = state.saved ? `every mark is saved in ${state.saved}` : "nothing is saved: kept in this kernel alone";
    const by = hello.by ? ` as ${hello.by}` : "";
    fill(about, `${progress.finished} of ${progress.queries} queries finished · ${progress.judged} judged, ${progress.relevant} relevant · ${kept}${by}`);

    drawList(moved);
    const left = state.candidates.filter((candidate) => candidate.relevance === null).length;
    const all = progress.finished === progress.queries;
    fill(finish, left ? `Finish: the other ${left === 1 ? "one is" : `${left} are`} not relevant` : all ? "Finished" : "Next query");
    finish.disabled = all && !left;
    none.disabled = !state.candidates.length || state.candidates.every((candidate) => candidate.relevance === 0);
    clear.disabled = state.candidates.every((candidate) => candidate.relevance === null);
    const nothing = state.candidates.length ? "" : "No channel finds anything for this query. ";
    const finished = progress.queries === 1 ? "The query is finished" : `All ${progress.queries} queries are finished`;
    fill(done, nothing + (all ? `${finished}. Add one, or look at labeller.qrels.` : ""));
    done.toggleAttribute("hidden", !done.textContent);
  }

  function drawList(moved) {
    const same = !moved && list.children.length === state.candidates.length && state.candidates.every((candidate, place) => list.children[place].dataset.id === candidate.id);
    if (!same) {
      fill(list, state.candidates.map(card));
      list.querySelectorAll(".lb-text").forEach(readable);
      list.scrollTop = 0;
    }
    // Marks change in place, so that neither the focus nor a selection of text is lost.
    state.candidates.forEach((candidate, place) => {
      const node = list.children[place];
      const marked = candidate.relevance;
      node.dataset.mark = marked === null ? "" : marked > 0 ? "yes" : "no";
      node.setAttribute("tabindex", place === at ? "0" : "-1");
      node.setAttribute("aria-label", `Candidate ${place + 1} of ${state.candidates.length}, ${marked === null ? "not marked" : grades[marked]}`);
      node.querySelectorAll(".lb-grade").forEach((button, grade) => button.setAttribute("aria-pressed", String(grade === marked)));
    });
  }

  function card(candidate, place) {
    const buttons = grades.map((name, grade) =>
      h("button", { type: "button", class: "lb-grade", tabindex: "-1", "data-grade": grade > 0 ? "yes" : "no", "aria-pressed": "false", onclick: () => mark(place, grade, false) },
        h("kbd", { "aria-hidden": "true" }, String(grade)), ` ${name}`));
    const body = h("div", { class: "lb-text", id: `${idOf}-${place}` }, candidate.text, candidate.more ? h("span", { class: "ml-quiet" }, ` … and ${candidate.more} characters more`) : null);
    return h("li", { class: "lb-card", "data-id": candidate.id, tabindex: "-1", "aria-describedby": body.id, onclick: () => { at = place; }, onfocusin: () => { at = place; readable(body); } },
      h("div", { class: "lb-said" }, body,
        h("div", { class: "lb-facts ml-quiet" }, h("code", {}, candidate.shown_id), candidate.facts.map((fact) => ` · ${fact}`))),
      h("div", { class: "lb-grades", role: "group", "aria-label": "Relevance" }, buttons));
  }

  /** A text that is longer than its box can have the focus too, so that the keyboard scrolls it. */
  function readable(body) {
    if (body.scrollHeight > body.clientHeight + 1) body.setAttribute("tabindex", "0");
    else body.removeAttribute("tabindex");
  }

  function short(said, most) {
    return said.length > most ? `${said.slice(0, most - 1)}…` : said;
  }
}

export default { render: (context) => mount(context, { title: "Labelling", build: buildLabeller }) };
