std = "ngx_lua"
max_line_length = 80
-- The cases are copies, kept as they were published.
exclude_files = { "**/testdata/**", "drill/scenarios/cases" }
