"""Sphinx's configuration of the site. Its source is what stage.py lays; its environment is .venv-docs (`make docs`)."""

project = "Turnstile"
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "index"
html_theme = "furo"
html_title = "Turnstile"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {  # the colour of the live page
    "light_css_variables": {"color-brand-primary": "#0f766e", "color-brand-content": "#0f766e"},
    "dark_css_variables": {"color-brand-primary": "#2dd4bf", "color-brand-content": "#2dd4bf"},
}

myst_heading_anchors = 6  # GitHub's anchors
smartquotes = False  # "--option" stays as it is typed
nitpicky = True

copybutton_exclude = ".linenos, .gp, .go"  # what is copied is what is typed: no prompts, no output
