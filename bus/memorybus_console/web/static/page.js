"use strict";
// Behaviour beyond plain HTML: live updates, times of the reader's zone, charts of the last hour, keys.
(() => {
  const live = document.querySelector("[data-live]");
  const stale = document.getElementById("stale");
  const title = document.title;
  let source = null;

  // The server writes UTC. The Swedish form is ISO 8601's: no reader takes the month for the day.
  const form = (at, zone) => at.toLocaleString("sv-SE", zone);
  const showLocalTimes = (part) => part.querySelectorAll("time:not([title])").forEach((element) => {
    const at = new Date(element.dateTime || element.textContent);
    if (isNaN(at)) return;
    element.title = `${form(at, { timeZone: "UTC" })} UTC`;
    element.textContent = form(at);
  });
  const countFindings = () => {
    const element = document.querySelector("[data-findings]");
    const count = element ? Number(element.dataset.findings) : 0;
    document.title = count ? `(${count}) ${title}` : title;
  };
  showLocalTimes(document);
  countFindings();
  const view = document.querySelector("nav [aria-current]");
  if (view) view.parentElement.scrollLeft = view.offsetLeft - view.parentElement.offsetLeft; // a phone's shows a part
  document.addEventListener("htmx:afterSwap", (event) => showLocalTimes(event.target));

  const isBusy = () => {
    const at = document.activeElement;
    return live.contains(at) && at.matches("input, textarea, select");
  };
  const swap = (text) => {
    if (isBusy()) return; // do not interrupt people who type
    htmx.swap(live, text, { swapStyle: "innerHTML" });
    showLocalTimes(live);
    countFindings();
    live.dataset.at = Date.now();
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(location.href);
    source.onmessage = (event) => { stale.textContent = ""; swap(event.data); };
    source.onerror = () => { stale.textContent = "no connection: this page is not up to date"; };
  };
  const close = () => { if (source) source.close(); source = null; };
  if (live && live.childElementCount) {
    open(); // hidden tabs have no connection, because browsers allow few to one host
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
    addEventListener("pagehide", close);
  }

  const COLOURS = ["--backlog", "--parked", "--ok", "--critical", "--dim"];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const HEIGHT = 180;
  const draw = async (figure) => {
    const answer = await fetch(figure.dataset.from);
    if (!answer.ok) return;
    const found = await answer.json();
    const series = found[figure.dataset.chart];
    const names = Object.keys(series);
    const clock = (at) => new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 } };
    const options = {
      width: figure.clientWidth - 20,
      height: HEIGHT,
      series: [{}, ...names.map((label, at) => ({ label, stroke: colour(COLOURS[at % COLOURS.length]), width: 2 }))],
      axes: [{ ...axis, values: (_, splits) => splits.map(clock) }, { ...axis, size: 60 }],
      legend: { live: false },
      scales: { x: { range: () => [Date.now() / 1000 - 3600, Date.now() / 1000] }, y: { range: (_, low, high) => [0, Math.max(1, high ?? 1)] } },
    };
    const data = [found.at, ...names.map((name) => series[name])];
    if (figure.plot && figure.plot.names === names.join("\n")) {
      figure.plot.chart.setData(data);
    } else {
      if (figure.plot) figure.plot.chart.destroy();
      figure.plot = { names: names.join("\n"), chart: new uPlot(options, data, figure) };
    }
  };
  const figures = [...document.querySelectorAll("[data-chart]")];
  const drawAll = () => { if (!document.hidden) figures.forEach((one) => draw(one).catch(() => {})); };
  const redraw = () => {
    figures.forEach((one) => { if (one.plot) one.plot.chart.destroy(); one.plot = null; });
    drawAll();
  };
  if (figures.length) {
    drawAll();
    setInterval(drawAll, 5000);
    const fit = new ResizeObserver((entries) => entries.forEach(({ target }) => {
      if (target.plot) target.plot.chart.setSize({ width: target.clientWidth - 20, height: HEIGHT });
    }));
    figures.forEach((figure) => fit.observe(figure));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  const keys = document.getElementById("keys");
  const known = [...document.querySelectorAll("[data-key]")];
  const list = keys.querySelector("dl");
  [...known.map((one) => [one.dataset.key, one.textContent]), ["/", "search, if the page has one"], ["?", "these keys"]]
    .forEach(([key, text]) => {
      const term = document.createElement("dt");
      const pressed = document.createElement("kbd");
      pressed.textContent = key;
      term.append(pressed);
      const meaning = document.createElement("dd");
      meaning.textContent = text;
      list.append(term, meaning);
    });
  const on = document.getElementById("keys-on"); // people who use speech input may have to turn keys off
  on.checked = localStorage.getItem("keys") !== "off";
  on.addEventListener("change", () => localStorage.setItem("keys", on.checked ? "on" : "off"));
  document.querySelector("[data-keys]").addEventListener("click", () => keys.showModal());
  document.addEventListener("keydown", (event) => {
    if (!on.checked) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
    const link = known.find((one) => one.dataset.key === event.key);
    const search = document.querySelector("[data-search]");
    if (link) link.click();
    else if (event.key === "?") keys.showModal();
    else if (event.key === "/" && search) { event.preventDefault(); search.focus(); }
  });
})();
