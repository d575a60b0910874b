// Keeps [data-live="yes"] up to date by fetching this page again; without scripts the page has a link that reloads it.
const PERIOD_MS = 2000;
async function refresh() {
  const here = document.querySelector('[data-live="yes"]');
  if (!here) return;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const there = answer.ok ? page.querySelector("[data-live]") : null;
    if (there && !here.contains(document.activeElement) && there.innerHTML !== here.innerHTML) here.innerHTML = there.innerHTML;
    if (there && there.dataset.live === "no") { here.innerHTML = there.innerHTML; here.dataset.live = "no"; return; }
  } catch (error) {
    console.debug("the registry does not answer; trying again", error);
  }
  setTimeout(refresh, PERIOD_MS);
}
setTimeout(refresh, PERIOD_MS);
