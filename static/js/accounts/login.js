// Logging in leads back to where one was, the part of the page (#L120) with it. A browser sends that
// part to no server: it is put where the login keeps the address.

export function bindLogin() {
  for (const link of document.querySelectorAll("a[data-login]")) {
    const bare = link.getAttribute("href");
    const follow = () => link.setAttribute("href", bare + encodeURIComponent(location.hash));
    follow();
    addEventListener("hashchange", follow);
  }
  // The server sent us here instead of a page, whose part the browser has kept in this address.
  const next = document.querySelector("[data-login-form] input[name=next]");
  if (next?.value && location.hash && !next.value.includes("#")) next.value += location.hash;
  const signIn = document.querySelector("a[data-sign-in*='next=']");
  if (signIn && location.hash) signIn.href += encodeURIComponent(location.hash);
}
