// A page that is opened as a file may load neither modules nor data: it says so.
if (location.protocol === "file:") {
  const said = document.getElementById("wrong");
  said.textContent = "Opened as a file, this page cannot load its parts. Serve the folder (python -m http.server) or type: separatrix explore";
  said.hidden = false;
  document.getElementById("state").textContent = "";
}
