package drill

import (
	"fmt"
	"reflect"
	"strings"
	"text/template"
)

// Vars are the template variables of a case and of its configuration file.
type Vars struct {
	Run  string // private run directory
	Case string // the case folder
	Port int    // the first of ten free ports in a row on 127.0.0.1

	Port1, Port2, Port3, Port4, Port5, Port6, Port7, Port8, Port9 int
}

func newVars(run, dir string, port int) Vars {
	return Vars{
		Run: run, Case: dir, Port: port,
		Port1: port + 1, Port2: port + 2, Port3: port + 3, Port4: port + 4, Port5: port + 5,
		Port6: port + 6, Port7: port + 7, Port8: port + 8, Port9: port + 9,
	}
}

// fill runs text as a template. A text that is no template, as Lua's
// "{{1, 2}}" is not, only has its plain variables replaced.
func (v Vars) fill(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("text").Parse(text)
	if err != nil {
		return v.replace(text), nil
	}
	var b strings.Builder
	if err := t.Execute(&b, v); err != nil {
		return "", fmt.Errorf("template: %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	return b.String(), nil
}

func (v Vars) replace(text string) string {
	var pairs []string
	val := reflect.ValueOf(v)
	for i := range val.NumField() {
		pairs = append(pairs, "{{."+val.Type().Field(i).Name+"}}", fmt.Sprint(val.Field(i).Interface()))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// environ is what shell lines of a case find in their environment.
func (v Vars) environ(master int, workers []int) []string {
	env := []string{"RUN=" + v.Run, "CASE=" + v.Case, fmt.Sprintf("PORT=%d", v.Port)}
	for i := 1; i <= 9; i++ {
		env = append(env, fmt.Sprintf("PORT%d=%d", i, v.Port+i))
	}
	list := strings.Trim(fmt.Sprint(workers), "[]")
	if master == 0 {
		return append(env, "MASTER=", "WORKERS="+list)
	}
	return append(env, fmt.Sprintf("MASTER=%d", master), "WORKERS="+list)
}

// filled returns a copy of the case with the variables replaced in every
// string but About.
func (c *Case) filled(v Vars) (*Case, error) {
	out := *c
	out.About = "" // told as it is
	if err := fillAll(reflect.ValueOf(&out).Elem(), v); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	out.About = c.About
	return &out, nil
}

// fillAll replaces in place, but first copies what the original shares.
func fillAll(val reflect.Value, v Vars) error {
	switch val.Kind() {
	case reflect.String:
		s, err := v.fill(val.String())
		if err != nil {
			return err
		}
		val.SetString(s)
	case reflect.Struct:
		for i := range val.NumField() {
			if err := fillAll(val.Field(i), v); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if val.IsNil() {
			return nil
		}
		fresh := reflect.New(val.Type().Elem())
		fresh.Elem().Set(val.Elem())
		val.Set(fresh)
		return fillAll(fresh.Elem(), v)
	case reflect.Slice:
		return fillSlice(val, v)
	case reflect.Map:
		return fillMap(val, v)
	}
	return nil
}

func fillSlice(val reflect.Value, v Vars) error {
	fresh := reflect.MakeSlice(val.Type(), val.Len(), val.Len())
	reflect.Copy(fresh, val)
	val.Set(fresh)
	for i := range fresh.Len() {
		if err := fillAll(fresh.Index(i), v); err != nil {
			return err
		}
	}
	return nil
}

func fillMap(val reflect.Value, v Vars) error {
	fresh := reflect.MakeMap(val.Type())
	for _, k := range val.MapKeys() {
		item := reflect.New(val.Type().Elem()).Elem()
		item.Set(val.MapIndex(k))
		if err := fillAll(item, v); err != nil {
			return err
		}
		fresh.SetMapIndex(k, item)
	}
	val.Set(fresh)
	return nil
}
