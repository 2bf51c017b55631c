// Replaces what has changed of a run's page while the run goes on; reloads it for the verdict.
"use strict";
const parts = page => [...page.querySelectorAll("main > section")];
const title = part => part.querySelector("h2")?.textContent;
const source = new EventSource(`${location.pathname}/live`);
source.onmessage = event => {
  const next = new DOMParser().parseFromString(event.data, "text/html");
  const [old, now] = [parts(document), parts(next)];
  let last; // the first section has no title and is on every page
  now.forEach(part => {
    const same = old.find(one => title(one) === title(part));
    if (same?.outerHTML === part.outerHTML) { last = same; return; }
    const open = [...(same?.querySelectorAll("details") ?? [])].map(one => one.open);
    part.querySelectorAll("details").forEach((one, number) => { one.open = open[number] ?? one.open; });
    same ? same.replaceWith(part) : last.after(part);
    last = part;
  });
  old.filter(one => !now.some(part => title(part) === title(one))).forEach(one => one.remove());
  document.title = next.title;
};
source.addEventListener("end", () => { source.close(); location.reload(); });
// The server has no place for another listener: look again now and then.
source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 6000); };
