package nginxconf

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// files serves a configuration from memory.
func files(m map[string]string) Reader {
	return Reader{
		Read: func(p string) ([]byte, error) {
			if text, ok := m[p]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		},
		Glob: func(pattern string) []string {
			var list []string
			for name := range m {
				if strings.HasPrefix(name, strings.TrimSuffix(pattern, "*.conf")) && name != "/etc/nginx/nginx.conf" {
					list = append(list, name)
				}
			}
			return list
		},
	}
}

func flat(list []Directive, indent string) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%s%s%q %d\n%s", indent, d.Name, d.Args, d.Line, flat(d.Block, indent+" "))
	}
	return b.String()
}

func TestParse(t *testing.T) {
	list, err := Parse(files(map[string]string{
		"/etc/nginx/nginx.conf": "user root; # not {this;\nhttp {\n include conf.d/*.conf;\n log_format x '{ \"a\": ;}' \"b\\\"\";\n}\n",
		"/etc/nginx/conf.d/a.conf": "server {\n listen 80 reuseport;\n location ~ ^/a\\{2\\} { return 200 ${host}x; }\n" +
			" access_by_lua_block {\n local s = \"}\" -- }\n --[[ } ]] local t = { a = [[ } ]] }\n }\n lua_code_cache off;\n}",
	}), "/etc/nginx/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	want := `user["root"] 1
http[] 2
 server[] 1
  listen["80" "reuseport"] 2
  location["~" "^/a\\{2\\}"] 3
   return["200" "${host}x"] 3
  access_by_lua_block[] 4
  lua_code_cache["off"] 8
 log_format["x" "{ \"a\": ;}" "b\""] 4
`
	if got := flat(list, ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestBounds(t *testing.T) {
	for name, text := range map[string]string{
		"includes itself": "include nginx.conf;", "deep": strings.Repeat("a {", 100), "many": strings.Repeat(";", maxDirectives+1),
		"large": strings.Repeat(" ", maxBytes+1),
	} {
		if _, err := Parse(files(map[string]string{"/etc/nginx/nginx.conf": text}), "/etc/nginx/nginx.conf"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Parse(files(map[string]string{"/c": "a;\nhttp {\n"}), "/c"); err == nil || !strings.Contains(err.Error(), "/c line 3") {
		t.Errorf("open brace: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("http { server { listen 80; } }")
	f.Add("a_by_lua_block { [[ } -- ]] '\\' }")
	f.Add("include /c; ${")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = Parse(files(map[string]string{"/c": text}), "/c")
	})
}
