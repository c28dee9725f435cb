// "Why not this one?": an id or some words, and the answer with what would bring the memory back.

function whyPanel({ view, apply, open }) {
  const input = h("input", { type: "search", class: "in-why-input", placeholder: "an id, or words of the memory that you miss", "aria-label": "Why not this one? An id, or words of a memory" });
  const answer = h("div", { class: "in-why-answer", "aria-live": "polite" });
  onEnter(input, () => ask(input.value));
  const form = h(
    "div",
    { class: "in-why-form", role: "search" },
    h("span", { class: "in-why-title", "aria-hidden": "true" }, "Why not this one?"),
    input,
    h("button", { type: "button", onclick: () => ask(input.value) }, "Ask"),
  );
  let asked = null;

  const ask = async (text) => {
    asked = text;
    input.value = text;
    try {
      const { body } = await view.link.latest("why", { text });
      view.clear();
      draw(body);
    } catch (error) {
      view.fail(error);
    }
  };

  const draw = (body) => {
    if (body.answer) return fill(answer, one(body.answer));
    if (body.said) return fill(answer, h("p", { class: "ml-quiet" }, body.said));
    return fill(
      answer,
      h("p", { class: "ml-quiet" }, "Which of these?"),
      h(
        "ul",
        { class: "in-choices" },
        body.choices.map((choice) =>
          h(
            "li",
            {},
            h("button", { type: "button", class: "in-link", onclick: () => ask(choice.id) }, h("code", {}, choice.shown_id)),
            h("span", { class: "in-near-text" }, choice.text),
            h("span", { class: "ml-quiet ml-number" }, choice.rank === null ? "" : `#${choice.rank}`),
          ),
        ),
      ),
    );
  };

  const one = (found) => [
    h(
      "p",
      {},
      h("button", { type: "button", class: "in-link", onclick: () => open(found.id) }, h("code", {}, found.shown_id)),
      found.found ? " is among the hits:" : " is not among the hits:",
    ),
    h("ul", { class: "in-reasons" }, found.reasons.map((reason) => h("li", {}, reason))),
    found.remedies.length
      ? [
          h("p", {}, "To bring it back:"),
          h(
            "ul",
            { class: "in-reasons" },
            found.remedies.map((remedy) =>
              h(
                "li",
                {},
                h("span", {}, remedy.words),
                remedy.changes ? h("button", { type: "button", class: "in-small", onclick: () => apply(remedy.changes, found.id) }, "try it") : null,
              ),
            ),
          ),
        ]
      : null,
  ];

  return {
    node: h("section", { class: "in-why", "aria-label": "Why not this one?" }, form, answer),
    ask,
    /** The settings have changed: an answer that is shown may be wrong now. */
    again: () => {
      if (asked !== null && answer.childNodes.length) ask(asked);
    },
    focus: () => input.focus(),
  };
}
