// "/" moves to the search box, as on other registries. Everything else works without scripts.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const box = document.querySelector('input[type="search"]');
  if (box) { event.preventDefault(); box.focus(); box.select(); }
});
