// Light or dark as was chosen on the site, where the site keeps it; else as the system has it.
try {
  const chosen = JSON.parse(localStorage.getItem(`${new URL("..", location).pathname}.__palette`))?.color?.scheme;
  if (chosen) document.documentElement.style.colorScheme = chosen === "slate" ? "dark" : "light";
} catch {} // no storage here
