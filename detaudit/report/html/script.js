(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (name, kind, text) => {
    const made = document.createElement(name);
    made.className = kind;
    made.textContent = text;
    return made;
  };

  // The theme: that of the system, light, or dark.
  const themes = ["auto", "light", "dark"];
  const button = document.querySelector(".theme");
  const names = button.dataset.names.split("|");
  let theme = "auto";
  try { theme = localStorage.getItem("detaudit-theme") || theme; } catch { /* a file may have no storage */ }
  const show = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = names[Math.max(0, themes.indexOf(theme))];
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("detaudit-theme", theme); } catch { /* kept for this page only */ }
    show();
  });
  show();

  // Commands to copy. Without a clipboard, the command is selected.
  for (const copy of all(".copy")) {
    copy.hidden = false;
    const before = copy.textContent;
    const code = copy.parentElement.querySelector("code");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        copy.textContent = copy.dataset.done;
        setTimeout(() => { copy.textContent = before; }, 1600);
      } catch {
        getSelection().selectAllChildren(code);
      }
    });
  }

  // A tooltip. All that it says is in the page or in the name of a figure too.
  const tip = make("div", "tip", "");
  tip.hidden = true;
  document.body.append(tip);
  const place = (x, top) => {
    tip.hidden = false;
    const width = tip.offsetWidth;
    const left = x + 14 + width > innerWidth - 8 ? x - 14 - width : x + 14;
    tip.style.left = `${Math.max(8, left) + scrollX}px`;
    tip.style.top = `${Math.max(0, top + scrollY)}px`;
  };
  const hide = () => { tip.hidden = true; };
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // Cells of the ladder; the arrow keys move over a table, one cell of which takes the focus.
  for (const table of all(".lad")) {
    const rows = all("tbody tr", table).map((row) => all("td", row));
    const say = (cell) => {
      tip.textContent = cell.dataset.tip;
      const box = cell.getBoundingClientRect();
      place(box.left + box.width / 2, box.bottom + 6);
    };
    rows.forEach((row, y) => row.forEach((cell, x) => {
      cell.tabIndex = x + y === 0 ? 0 : -1;
      cell.setAttribute("aria-label", cell.dataset.tip);
      cell.addEventListener("pointerenter", () => say(cell));
      cell.addEventListener("pointerleave", hide);
      cell.addEventListener("focus", () => say(cell));
      cell.addEventListener("blur", hide);
      cell.addEventListener("keydown", (event) => {
        const by = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
        const next = by && rows[y + by[1]]?.[x + by[0]];
        if (!next) return;
        cell.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
        event.preventDefault();
      });
    }));
  }

  // A cursor over the steps of a plot, moved by a pointer or by keys.
  for (const area of all(".area[data-values]")) {
    const { steps, x, series } = JSON.parse(area.dataset.values);
    const line = area.querySelector(".cur");
    const last = steps.length - 1;
    let at = 0;
    const values = () => series.filter((one) => one.v[at] !== null).map((one) => `${one.name}: ${one.v[at]}`);
    const move = (to) => {
      at = Math.max(0, Math.min(last, to));
      line.setAttribute("x1", `${x[at] * 100}%`);
      line.setAttribute("x2", `${x[at] * 100}%`);
      line.style.visibility = "visible";
      tip.textContent = [steps[at], ...values()].join("\n");
      const box = area.getBoundingClientRect();
      place(box.left + x[at] * box.width, box.top + 8);
      area.setAttribute("aria-valuenow", at + 1);
      area.setAttribute("aria-valuetext", [steps[at], ...values()].join(", "));
    };
    const leave = () => { hide(); line.style.visibility = "hidden"; };
    const nearest = (event) => {
      const box = area.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      let low = 0, high = last;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (x[middle] > share) high = middle; else low = middle;
      }
      return share - x[low] < x[high] - share ? low : high;
    };
    area.tabIndex = 0;
    area.setAttribute("role", "slider");
    area.setAttribute("aria-valuemin", 1);
    area.setAttribute("aria-valuemax", last + 1);
    area.setAttribute("aria-valuenow", 1);
    area.setAttribute("aria-valuetext", [steps[0], ...values()].join(", "));
    area.addEventListener("pointermove", (event) => move(nearest(event)));
    area.addEventListener("pointerdown", (event) => move(nearest(event)));
    area.addEventListener("pointerleave", leave);
    area.addEventListener("focus", () => { if (area.matches(":focus-visible")) move(at); });
    area.addEventListener("blur", leave);
    area.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (by) move(at + by);
      else if (event.key === "Home") move(0);
      else if (event.key === "End") move(last);
      else return;
      event.preventDefault();
    });
  }

  // What scrolls sideways can be scrolled by keys.
  for (const box of all(".scroll, .src, .code pre")) {
    if (box.scrollWidth <= box.clientWidth + 1) continue;
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", box.querySelector("caption")?.textContent || "scrolls sideways");
  }

  // On paper, nothing is folded.
  addEventListener("beforeprint", () => all("details").forEach((one) => { one.dataset.open = one.open; one.open = true; }));
  addEventListener("afterprint", () => all("details").forEach((one) => { one.open = one.dataset.open === "true"; }));
})();
