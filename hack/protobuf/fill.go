package main

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A filling is a way to give values to all fields of a type.
type filling string

const (
	given  filling = "given"  // what the object says
	zero   filling = "zero"   // nothing: pointers, lists and maps are nil
	hollow filling = "hollow" // pointers to zero values; empty lists and maps
	full   filling = "full"   // something in every field, two of each in short lists
	edges  filling = "edges"  // something in every field, at the edge of its range
)

// repeats is how often a type may stand within itself.
const repeats = 2

// deep is where lists of structs stop to have two items.
const deep = 5

type filler struct {
	filling filling
	count   int
	within  map[reflect.Type]int
	depth   int
}

func fill(object any, filling filling) {
	if filling == given || filling == zero {
		return
	}
	made := &filler{filling: filling, within: map[reflect.Type]int{}}
	made.value(reflect.ValueOf(object).Elem(), "object")
}

func (f *filler) value(v reflect.Value, name string) {
	if f.special(v, name) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		f.structure(v)
	case reflect.Pointer:
		if f.within[v.Type().Elem()] < repeats {
			v.Set(reflect.New(v.Type().Elem()))
			f.value(v.Elem(), name)
		}
	case reflect.Slice:
		f.slice(v, name)
	case reflect.Map:
		f.mapping(v, name)
	default:
		if f.filling != hollow {
			f.scalar(v, name)
		}
	}
}

func (f *filler) structure(v reflect.Value) {
	if f.within[v.Type()] >= repeats {
		return
	}
	f.within[v.Type()]++
	f.depth++
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.IsExported() && field.Type != reflect.TypeFor[meta.TypeMeta]() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			f.value(v.Field(i), name)
		}
	}
	f.depth--
	f.within[v.Type()]--
}

func (f *filler) slice(v reflect.Value, name string) {
	item := v.Type().Elem()
	size := 2
	switch {
	case f.filling == hollow:
		size = 0
	case item.Kind() == reflect.Uint8:
		f.count++
		v.SetBytes([]byte{0, 0xff, byte(f.count), 'x'}[:1+f.count%4])
		return
	case f.within[item] >= repeats:
		return
	case item.Kind() == reflect.Struct && (f.depth > deep || f.filling == edges):
		size = 1
	}
	v.Set(reflect.MakeSlice(v.Type(), size, size))
	for i := range size {
		f.value(v.Index(i), fmt.Sprintf("%s-%d", name, i))
	}
}

func (f *filler) mapping(v reflect.Value, name string) {
	if f.within[v.Type().Elem()] >= repeats {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	if f.filling == hollow {
		return
	}
	for _, key := range []string{"a/b", "c.d"} {
		item := reflect.New(v.Type().Elem()).Elem()
		f.value(item, name)
		v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
	}
	if f.filling == edges { // an empty key, and a value that is not there
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	}
}

func (f *filler) scalar(v reflect.Value, name string) {
	f.count++
	extreme := f.filling == edges
	switch v.Kind() {
	case reflect.String:
		text := name
		if extreme {
			text = []string{"é\n\"<\\", "日本", "𝄞\x00", "", " "}[f.count%5]
		}
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(!extreme)
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Int16, reflect.Int8:
		v.SetInt(f.integer(v.Type().Bits()))
	case reflect.Uint32, reflect.Uint64, reflect.Uint8:
		v.SetUint(uint64(f.count))
	case reflect.Float64:
		v.SetFloat([]float64{0.5, -1e300, math.SmallestNonzeroFloat64}[f.count%3])
	default:
		panic("no values for " + v.Type().String())
	}
}

func (f *filler) integer(bits int) int64 {
	if f.filling == full {
		return int64(f.count)
	}
	least := int64(-1) << (bits - 1)
	return []int64{-1, least, -(least + 1), 0, 128}[f.count%5]
}

// pick is one of some values: the first if hollow, else each in its turn.
func pick[T any](f *filler, values ...T) T {
	if f.filling == hollow {
		return values[0]
	}
	f.count++
	return values[1+f.count%(len(values)-1)]
}

// special fills types that have a form of their own in JSON.
func (f *filler) special(v reflect.Value, name string) bool {
	at := func(seconds, nanos int64) time.Time { return time.Unix(seconds, nanos).UTC() }
	switch value := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*value = resource.MustParse(pick(f, "0", "100m", "1Gi", "1.5", "2e3", "-7", "3n"))
	case *intstr.IntOrString:
		*value = pick(f, intstr.FromInt32(0), intstr.FromString("25%"),
			intstr.FromInt32(8080), intstr.FromString(""), intstr.FromInt32(-1))
	case *meta.Time:
		*value = meta.NewTime(pick(f, time.Time{}, at(1700000000, 0), at(0, 0), at(-1, 0)))
	case *meta.MicroTime:
		*value = meta.NewMicroTime(pick(f, time.Time{}, at(1700000000, 123456000),
			at(-1, 999999000), at(0, 0), at(1, 1000)))
	case *meta.Duration:
		value.Duration = pick(f, 0, 90*time.Second, -time.Nanosecond, 36*time.Hour+5)
	case *runtime.RawExtension:
		value.Raw = pick(f, nil, []byte(`{"a":[1,-2.5,null,{"b":"c"}]}`), []byte(`{}`))
	case *meta.FieldsV1:
		value.Raw = []byte(pick(f, `{}`, `{"f:a":{".":{},"k:{\"b\":1}":{}}}`, `{"f:b":{}}`))
	case *apiextensions.JSON:
		value.Raw = []byte(pick(f, `null`, `{"a":[1,"b",null,true]}`, `"x"`, `-7`, `1.5`,
			`[]`, `false`, `{}`, `""`))
	case *apiextensions.JSONSchemaPropsOrArray:
		if f.turn() {
			f.value(reflect.ValueOf(&value.Schema).Elem(), name)
		} else {
			f.value(reflect.ValueOf(&value.JSONSchemas).Elem(), name)
		}
	case *apiextensions.JSONSchemaPropsOrBool:
		if value.Allows = f.turn(); value.Allows {
			f.value(reflect.ValueOf(&value.Schema).Elem(), name)
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if f.turn() {
			f.value(reflect.ValueOf(&value.Schema).Elem(), name)
		} else {
			value.Property = pick(f, []string{}, []string{"a", ""})
		}
	default:
		return false
	}
	return true
}

func (f *filler) turn() bool {
	f.count++
	return f.count%2 == 0
}
