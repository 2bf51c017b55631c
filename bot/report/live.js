// Replaces what has changed of a run's page while the run goes on; reloads it for the verdict.
"use strict";
const parts = page => [...page.querySelectorAll("main > section")];
const source = new EventSource(`${location.pathname}/live`);
source.onmessage = event => {
  const next = new DOMParser().parseFromString(event.data, "text/html");
  const [old, now] = [parts(document), parts(next)];
  now.forEach((part, at) => {
    if (old[at]?.outerHTML === part.outerHTML) return;
    const open = [...(old[at]?.querySelectorAll("details") ?? [])].map(one => one.open);
    part.querySelectorAll("details").forEach((one, number) => { one.open = open[number] ?? one.open; });
    old[at] ? old[at].replaceWith(part) : old.at(-1).parentNode.insertBefore(part, document.querySelector("footer"));
  });
  old.slice(now.length).forEach(part => part.remove());
  document.title = next.title;
};
source.addEventListener("end", () => { source.close(); location.reload(); });
// The server has no place for another listener: look again now and then.
source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 6000); };
