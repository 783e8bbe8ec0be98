package web

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const apiDocumentation = "../docs/api.md"

// Every route that is registered is described.
func TestRoutesDocumentation(t *testing.T) {
	doc, err := os.ReadFile(apiDocumentation)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`"((?:GET|POST|PUT|DELETE) /[^"]*)"`)
	seen := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range route.FindAllSubmatch(source, -1) {
			seen[string(m[1])] = true
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d routes found; is the search broken?", len(seen))
	}
	for r := range seen {
		if !strings.Contains(string(doc), "`"+r+"`") {
			t.Errorf("%s is not in docs/api.md", r)
		}
	}
	for _, m := range regexp.MustCompile("`((?:GET|POST|PUT|DELETE) /[^`]*)`").FindAllSubmatch(doc, -1) {
		if !seen[string(m[1])] {
			t.Errorf("docs/api.md tells of %s, which is not there", m[1])
		}
	}
}

// The tables of fields are made from the types and their comments.
func TestTypesDocumentation(t *testing.T) {
	doc, err := os.ReadFile(apiDocumentation)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- Made from web/api/api.go: go test ./web -run Documentation -update -->\n"
	head, _, ok := bytes.Cut(doc, []byte(mark))
	if !ok {
		t.Fatal("the mark is gone")
	}
	want := append(append(head, mark...), typeTables(t)...)
	if *update {
		if err := os.WriteFile(apiDocumentation, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(want, doc) {
		t.Error("docs/api.md is not what the types say; run with -update")
	}
}

func typeTables(t *testing.T) []byte {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "api/api.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			s := spec.(*ast.TypeSpec)
			body, ok := s.Type.(*ast.StructType)
			if !ok {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", s.Name.Name, strings.Join(strings.Fields(g.Doc.Text()), " "))
			for _, f := range body.Fields.List {
				tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
				name, rest, _ := strings.Cut(tag, ",")
				text := strings.TrimSpace(f.Comment.Text())
				if strings.Contains(rest, "omitempty") {
					text = strings.TrimPrefix(text+"; absent if empty", "; ")
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, types.ExprString(f.Type), strings.ReplaceAll(text, "|", `\|`))
			}
		}
	}
	return b.Bytes()
}
