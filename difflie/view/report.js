// A picture that is chosen fills the window. A click, the wheel, and the keys + and - change its
// size, 0 shows all of it, dragging moves it, Escape closes it.
const dialog = document.querySelector("dialog");
const stage = dialog.querySelector(".stage");
const image = stage.appendChild(document.createElement("img"));
const largest = 8;
// Of the picture: beside what fits into the window, now and where it began.
let scale = 1;
let first = 1;

function whole() {
  const ratio = image.naturalWidth / image.naturalHeight;
  return Math.min(stage.clientWidth, stage.clientHeight * ratio);
}

function zoom(to, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  // The point of the picture at (x, y) of the window stays there.
  const across = (stage.scrollLeft + x - image.offsetLeft) / image.offsetWidth;
  const down = (stage.scrollTop + y - image.offsetTop) / image.offsetHeight;
  scale = Math.min(largest * first, Math.max(1, to));
  image.style.width = `${scale * whole()}px`;
  stage.scrollLeft = across * image.offsetWidth + image.offsetLeft - x;
  stage.scrollTop = down * image.offsetHeight + image.offsetTop - y;
  stage.classList.toggle("larger", scale > 1);
}

for (const link of document.querySelectorAll("a.picture")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const shown = link.querySelector("img");
    image.src = shown.src;
    image.alt = shown.alt;
    dialog.querySelector("span").textContent = shown.alt;
    dialog.showModal();
    image.decode().then(() => {
      first = Math.max(1, Math.min(stage.clientWidth, image.naturalWidth) / whole());
      zoom(first);
      stage.scrollTo(0, 0);
    });
  });
}

function at(event) {
  const box = stage.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

let dragged = 0;
stage.addEventListener("pointerdown", () => { dragged = 0; });
stage.addEventListener("pointermove", (event) => {
  if (event.pointerType === "mouse" && event.buttons === 1) {
    dragged += Math.abs(event.movementX) + Math.abs(event.movementY);
    stage.scrollBy(-event.movementX, -event.movementY);
  }
});
stage.addEventListener("click", (event) => {
  if (dragged < 5) zoom(scale > first ? first : 3 * first, ...at(event));
});
stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(scale * (event.deltaY < 0 ? 1.25 : 0.8), ...at(event));
}, { passive: false });
image.addEventListener("dragstart", (event) => event.preventDefault());
dialog.addEventListener("keydown", (event) => {
  if (event.key === "+" || event.key === "=") zoom(scale * 1.5);
  if (event.key === "-") zoom(scale / 1.5);
  if (event.key === "0") zoom(1);
});
dialog.querySelector("button.larger").addEventListener("click", () => zoom(scale * 1.5));
dialog.querySelector("button.smaller").addEventListener("click", () => zoom(scale / 1.5));
window.addEventListener("resize", () => { if (dialog.open) zoom(scale); });
