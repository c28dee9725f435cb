// The calls that a server answered, newest first; a recall opens in the inspector, which Python shows below.

function buildActivity(view) {
  const body = h("tbody");
  const none = h("p", { class: "ac-none" }, "No calls yet. They appear here as they come.");
  const columns = ["call", "at (UTC)", "tool", "about", "hits", "ms", "client", ""];
  const table = h(
    "table",
    { class: "ac-calls", "aria-label": "Calls, newest first" },
    h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col", class: name === "hits" || name === "ms" ? "ml-number" : "" }, name)))),
    body,
  );
  let opened = null;
  let known = 0;

  async function open(call) {
    try {
      const answer = await view.link.ask("open", { call });
      view.clear();
      opened = answer.body.opened;
      for (const row of body.children) row.toggleAttribute("data-open", row.dataset.call === String(opened));
      view.say(`call ${call} is open in the inspector below`);
    } catch (error) {
      view.fail(error);
    }
  }

  const row = (call) =>
    h(
      "tr",
      { "data-call": call.call, "data-open": call.call === opened, "data-outcome": call.outcome },
      h("td", { class: "ml-number" }, `#${call.call}`),
      h("td", { class: "ml-quiet" }, call.at),
      h("td", {}, call.tool),
      h("td", { class: "ac-about" }, call.about, call.outcome === "ok" ? null : h("div", { class: "ac-wrong" }, `${call.outcome}: ${call.message}`)),
      h("td", { class: "ml-number" }, call.hits === null ? "" : call.hits),
      h("td", { class: "ml-number" }, call.milliseconds.toFixed(1)),
      h("td", { class: "ml-quiet ac-client" }, call.client),
      h("td", {}, call.openable ? h("button", { type: "button", "aria-label": `open call ${call.call} in the inspector`, onclick: () => open(call.call) }, "Inspect") : null),
    );

  const draw = (calls) => {
    const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.call : null;
    fill(body, calls.map(row));
    if (focused) body.querySelector(`tr[data-call="${focused}"] button`)?.focus({ preventScroll: true });
    table.hidden = !calls.length;
    none.hidden = calls.length > 0;
    const newest = calls.length ? calls[0].call : 0;
    if (known && newest > known) view.say(`${newest - known} more ${newest - known === 1 ? "call" : "calls"}`);
    known = newest;
  };

  fill(view.root, h("div", { class: "ac-scroll" }, table), none);
  draw(view.hello.calls);
  view.link.on("calls", draw);
}

export default { render: (context) => mount(context, { title: "calls of the memory server", build: buildActivity }) };
