// Completions under the search box, as an ARIA combobox. Without scripts the box is a plain form field.
const box = document.querySelector("#q");
const list = document.querySelector("#suggestions");
let found = [];
let chosen = -1;
let asked = 0;

function show() {
  list.replaceChildren(
    ...found.map((one, place) => {
      const item = document.createElement("li");
      item.id = `suggestion-${place}`;
      item.role = "option";
      item.ariaSelected = String(place === chosen);
      const said = document.createElement("code");
      said.textContent = one.says;
      item.append(said);
      if (one.means) item.append(Object.assign(document.createElement("span"), { textContent: one.means, className: "quiet small" }));
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(place); });
      return item;
    }),
  );
  list.hidden = found.length === 0;
  box.ariaExpanded = String(!list.hidden);
  if (chosen >= 0) box.setAttribute("aria-activedescendant", `suggestion-${chosen}`);
  else box.removeAttribute("aria-activedescendant");
}

function close() { found = []; chosen = -1; show(); }

function take(place) {
  const one = found[place];
  box.value = one.text;
  box.setSelectionRange(one.at, one.at);
  close();
  ask();
}

async function ask() {
  const mine = ++asked;
  const where = new URLSearchParams({ q: box.value, at: String(box.selectionStart ?? box.value.length) });
  try {
    const answer = await fetch(`/suggest?${where}`);
    const body = await answer.json();
    if (mine !== asked || document.activeElement !== box) return;
    found = body.ok ? body.suggestions : [];
    chosen = -1;
    show();
  } catch (error) {
    console.debug("no suggestions", error);
  }
}

if (box && list) {
  Object.assign(box, { role: "combobox", ariaExpanded: "false", ariaAutoComplete: "list" });
  box.setAttribute("aria-controls", "suggestions");
  box.addEventListener("input", ask);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (list.hidden) { if (event.key === "ArrowDown") { event.preventDefault(); ask(); } return; }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      chosen = (chosen + step + found.length + (chosen < 0 && step < 0 ? 1 : 0)) % found.length;
      show();
    } else if (event.key === "Escape") { event.preventDefault(); close(); }
    else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) { event.preventDefault(); take(chosen); }
  });
}
