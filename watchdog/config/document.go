package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Document lists all keys with their meaning and default, as Markdown. It is
// the one source of the documentation of the configuration.
func Document() string {
	var b strings.Builder
	b.WriteString("| key | default | meaning |\n|---|---|---|\n")
	document(&b, "", reflect.ValueOf(Default()))
	return b.String()
}

func document(b *strings.Builder, prefix string, v reflect.Value) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		key := prefix + field.Tag.Get("yaml")
		switch {
		case value.Kind() == reflect.Struct:
			document(b, key+".", value)
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
			fmt.Fprintf(b, "| `%s` | none | %s |\n", key, field.Tag.Get("doc"))
			document(b, key+"[].", reflect.New(value.Type().Elem()).Elem())
		default:
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", key, defaultText(value), field.Tag.Get("doc"))
		}
	}
}

func defaultText(v reflect.Value) string {
	if v.IsZero() {
		if v.Kind() == reflect.Bool {
			return "`false`"
		}
		return "none"
	}
	return fmt.Sprintf("`%v`", v.Interface())
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
