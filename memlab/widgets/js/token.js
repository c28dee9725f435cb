// The token of a server: on the page for a while, after a press of the button, and in no saved notebook.

function buildToken(view) {
  const { seconds, mask } = view.hello;
  let timer = null;
  let token = null;
  const text = h("code", {}, `Authorization: Bearer ${mask}`);
  const show = h("button", { type: "button", class: "ml-primary", "aria-pressed": "false", onClick: () => (token ? hide() : reveal()) }, "Show");
  const copy = h("button", { type: "button", onClick: () => take() }, "Copy");

  function hide() {
    clearTimeout(timer);
    token = null;
    text.textContent = `Authorization: Bearer ${mask}`;
    show.textContent = "Show";
    show.setAttribute("aria-pressed", "false");
    view.say("The token is hidden.");
  }

  async function ask() {
    view.clear();
    const { body } = await view.link.ask("token");
    return body.token;
  }

  async function reveal() {
    try {
      token = await ask();
    } catch (error) {
      view.fail(error);
      return;
    }
    text.textContent = `Authorization: Bearer ${token}`;
    show.textContent = "Hide";
    show.setAttribute("aria-pressed", "true");
    view.say(`The token is shown for ${Math.round(seconds)} seconds.`);
    clearTimeout(timer);
    timer = setTimeout(hide, 1000 * seconds);
  }

  async function take() {
    try {
      await navigator.clipboard.writeText(token ?? (await ask()));
      view.say("The token is in the clipboard.");
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    } catch (error) {
      view.fail(error);
    }
  }

  fill(
    view.root,
    h(
      "div",
      { style: { display: "flex", "flex-wrap": "wrap", gap: "8px", "align-items": "center", padding: "8px 12px" } },
      h("span", { style: { flex: "1 1 24em", "overflow-wrap": "anywhere" } }, text),
      show,
      copy,
    ),
  );
  return () => clearTimeout(timer);
}

export default { render: (context) => mount(context, { title: "Token of the MCP server", build: buildToken }) };
