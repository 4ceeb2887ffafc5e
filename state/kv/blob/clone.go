package blob

import "reflect"

// A Cloner makes deep copies of values. It may be used concurrently.
type Cloner struct {
	deep map[reflect.Type]bool
}

// NewCloner returns a Cloner. For the given types, and all types that they contain, it finds out only once whether
// their values share memory when they are assigned. Values of other types are copied correctly, but more slowly.
func NewCloner(types ...reflect.Type) *Cloner {
	c := &Cloner{deep: map[reflect.Type]bool{}}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		if _, done := c.deep[t]; done {
			return
		}
		c.deep[t] = isDeep(t)
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
			add(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				add(t.Field(i).Type)
			}
		}
	}
	for _, t := range types {
		add(t)
	}
	return c
}

// Clone returns an addressable copy that shares no memory with from that can be modified. Interfaces, channels and
// functions are shared, and so are unexported fields: no stored value has any that matter.
func (c *Cloner) Clone(from reflect.Value) reflect.Value {
	to := reflect.New(from.Type()).Elem()
	c.copyInto(to, from)
	return to
}

func (c *Cloner) copyInto(to, from reflect.Value) {
	to.Set(from)
	if c.isDeep(from.Type()) {
		c.copyShared(to)
	}
}

// copyShared replaces the memory that v shares with the value that was assigned to it.
func (c *Cloner) copyShared(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			v.Set(c.Clone(v.Elem()).Addr())
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		if c.isDeep(v.Type().Elem()) {
			for i := range list.Len() {
				c.copyShared(list.Index(i))
			}
		}
		v.Set(list)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		m := reflect.MakeMapWithSize(v.Type(), v.Len())
		for at := v.MapRange(); at.Next(); {
			m.SetMapIndex(at.Key(), c.Clone(at.Value()))
		}
		v.Set(m)
	case reflect.Array:
		for i := range v.Len() {
			c.copyShared(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && c.isDeep(f.Type()) {
				c.copyShared(f)
			}
		}
	}
}

// isDeep reports whether values of a type share memory when they are assigned. The location of a time.Time is shared
// all the same: it is never modified.
func (c *Cloner) isDeep(t reflect.Type) bool {
	is, found := c.deep[t]
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
