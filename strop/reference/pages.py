"""The pages under docs/reference, by file name."""

from collections.abc import Callable

from strop.reference import (
    cli_page,
    config_page,
    errors_page,
    metrics_page,
    run_directory_page,
    seams_page,
    slime_page,
)

PAGES: dict[str, Callable[[], str]] = {
    "config.md": config_page.render,
    "cli.md": cli_page.render,
    "slime-flags.md": slime_page.render,
    "metrics.md": metrics_page.render,
    "seams.md": seams_page.render,
    "run-directory.md": run_directory_page.render,
    "errors.md": errors_page.render,
}
