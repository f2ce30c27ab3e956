// What the pages add to the script of reports. No library; every page is complete without it.
(() => {
  "use strict";
  // A result can be taken from a file: it is put where it would be pasted, and goes nowhere until it is sent.
  for (const input of document.querySelectorAll("input[type=file][data-into]")) {
    input.parentNode.hidden = false;
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (file) input.form.elements[input.dataset.into].value = await file.text();
    });
    // The file itself is not sent.
    input.removeAttribute("name");
  }
})();
