// Light or dark: what the reader's system prefers, until they choose.

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

export function isDark(): boolean {
  return root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
}

/** Make `toggle` work, and tell `changed` whenever the colours are others. */
export function followTheme(toggle: HTMLButtonElement, changed: () => void): void {
  const name = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `Show the page in ${isDark() ? "light" : "dark"} colours`);
  };
  const update = () => {
    name();
    changed();
  };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    update();
  });
  system.addEventListener("change", update);
  // Paper is always light; charts follow the attribute.
  let chosen: string | undefined;
  addEventListener("beforeprint", () => {
    chosen = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    if (chosen) root.dataset.theme = chosen;
    else delete root.dataset.theme;
  });
  name();
  toggle.hidden = false;
}
