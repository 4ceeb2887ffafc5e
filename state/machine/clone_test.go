package machine

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

// fill sets everything in a value that can be set, so that nothing is empty.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 4))
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		m, key, value := reflect.MakeMap(v.Type()), reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		m.SetMapIndex(key, value)
		v.Set(m)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(t0))
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f, depth+1)
			}
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	}
}

// modify changes everything that is reached through pointers, slices and maps, in place.
func modify(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			modify(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			modify(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			v.SetMapIndex(k, reflect.Value{})
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(t0.Add(time.Hour)))
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				modify(f)
			}
		}
	default:
		if v.CanSet() {
			v.SetZero()
		}
	}
}

// TestClone: a copy is equal, and changes to it do not affect the original.
func TestClone(t *testing.T) {
	t.Parallel()
	var from state.Task
	fill(reflect.ValueOf(&from).Elem(), 0)
	before, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	c := from.Clone()
	if diff := cmp.Diff(&from, c); diff != "" {
		t.Fatalf("copy (-want +got):\n%s", diff)
	}
	modify(reflect.ValueOf(c).Elem())
	after, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("got a changed original (-before +after):\n%s", diff)
	}
	if len(before) < 5000 {
		t.Errorf("got %d copied bytes, want more", len(before))
	}
}
