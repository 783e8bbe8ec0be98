export const byId = (id) => document.getElementById(id);

// el makes an element with attributes and text or children. Texts are never
// parsed as HTML.
export function el(tag, attributes, content) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (Array.isArray(content)) e.append(...content);
  else if (content !== undefined) e.textContent = content;
  return e;
}
