package state

import (
	"bytes"
	"reflect"
	"sync"
)

const (
	maxKnown     = 64       // decoded values that are kept
	maxKnownSize = 64 << 10 // packed bytes of each
)

// known keeps some of the values that were decoded last, so that what did not change since is copied and not
// decoded again: that is ten times as fast, and a task is read several times for each event. It may be used
// concurrently. Its zero value is empty.
type known struct {
	mu   sync.Mutex
	list map[string]decoded
}

// decoded is a value with the packed bytes that it was made of. Nobody changes it.
type decoded struct {
	data  []byte
	value reflect.Value
}

// get sets what v points to as data was decoded before, if it is known.
func (k *known) get(key string, data []byte, v any) bool {
	k.mu.Lock()
	d, ok := k.list[key]
	k.mu.Unlock()
	to := reflect.ValueOf(v).Elem()
	if !ok || d.value.Type() != to.Type() || !bytes.Equal(d.data, data) {
		return false
	}
	copyInto(to, d.value)
	return true
}

// put keeps a copy of what v points to.
func (k *known) put(key string, data []byte, v any) {
	if len(data) > maxKnownSize {
		return
	}
	d := decoded{bytes.Clone(data), deepCopy(reflect.ValueOf(v).Elem())}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil {
		k.list = map[string]decoded{}
	}
	for old := range k.list { // any of them
		if len(k.list) < maxKnown || k.list[key].data != nil {
			break
		}
		delete(k.list, old)
	}
	k.list[key] = d
}

// deepCopy returns a copy that shares nothing that can be changed. Interfaces, channels and functions are
// shared: nothing that is stored has any.
func deepCopy(from reflect.Value) reflect.Value {
	to := reflect.New(from.Type()).Elem()
	copyInto(to, from)
	return to
}

func copyInto(to, from reflect.Value) {
	to.Set(from)
	if deep(from.Type()) {
		own(to)
	}
}

// own replaces what v shares with the value that it was set from.
func own(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			v.Set(deepCopy(v.Elem()).Addr())
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		if deep(v.Type().Elem()) {
			for i := range list.Len() {
				own(list.Index(i))
			}
		}
		v.Set(list)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		m := reflect.MakeMapWithSize(v.Type(), v.Len())
		for at := v.MapRange(); at.Next(); {
			m.SetMapIndex(at.Key(), deepCopy(at.Value()))
		}
		v.Set(m)
	case reflect.Array:
		for i := range v.Len() {
			own(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && deep(f.Type()) {
				own(f)
			}
		}
	}
}

// deep reports whether values of a type share anything when they are assigned. A time does, which is never
// changed: none of its fields can be set.
func deep(t reflect.Type) bool {
	is, found := deepTypes()[t]
	if !found {
		is = isDeep(t)
	}
	return is
}

func isDeep(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return true
	case reflect.Array:
		return isDeep(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && isDeep(f.Type) {
				return true
			}
		}
	}
	return false
}

// deepTypes is isDeep of all types that are read often: asking a type is slow.
var deepTypes = sync.OnceValue(func() map[reflect.Type]bool {
	list := map[reflect.Type]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		if _, done := list[t]; done {
			return
		}
		list[t] = isDeep(t)
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
			add(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				add(t.Field(i).Type)
			}
		}
	}
	add(reflect.TypeFor[Task]())
	add(reflect.TypeFor[[]Job]())
	return list
})
