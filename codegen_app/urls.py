"""All URLs: the admin, sign-in, and the pages."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.urls import include, path
from django.views.generic import RedirectView

from codegen_app.accounts.pages import sign_in

# One page to log in and one to change the password, with one throttle, also for the admin.
_TO_LOGIN = RedirectView.as_view(pattern_name="login", query_string=True)
_TO_PASSWORD = RedirectView.as_view(pattern_name="password")

admin.autodiscover()

handler400 = "codegen_app.web.errors.bad_request"
handler403 = "codegen_app.web.not_found.not_allowed"
handler404 = "codegen_app.web.not_found.not_found"
handler500 = "codegen_app.web.errors.server_error"

urlpatterns = [
    path("admin/login/", login_not_required(_TO_LOGIN)),
    path("admin/password_change/", _TO_PASSWORD),
    path("admin/", admin.site.urls),
    path("login/", sign_in.Login.as_view(), name="login"),
    path("login/oidc/", sign_in.sign_in, name="sign_in"),
    path("login/oidc/back/", sign_in.sign_in_callback, name="signed_in"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("", include("codegen_app.site.urls")),
]
