package corpus

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// isNull reports whether a node has the Null type: every value is null, and it
// fits any type.
func isNull(n parquet.Node) bool {
	return n.Leaf() && n.Type().Kind() < 0
}

// isText reports whether a leaf can hold text.
func isText(n parquet.Node) bool {
	if !n.Leaf() || n.Type().Kind() != parquet.ByteArray {
		return false
	}
	switch logical(n).(type) {
	case nil, *format.StringType, *format.EnumType, *format.JsonType:
		return true
	default:
		return false
	}
}

// isID reports whether a leaf can be an id: a value that prints back to one exact form.
func isID(n parquet.Node) bool {
	if !n.Leaf() {
		return false
	}
	switch t := logical(n); n.Type().Kind() {
	case parquet.Int32, parquet.Int64:
		_, isInt := t.(*format.IntType)
		return t == nil || isInt
	case parquet.ByteArray:
		return isText(n)
	case parquet.FixedLenByteArray:
		_, isUUID := t.(*format.UUIDType)
		return t == nil || isUUID
	default:
		return isNull(n)
	}
}

func logical(n parquet.Node) format.LogicalTypeValue {
	if lt := n.Type().LogicalType(); lt != nil {
		return lt.Value
	}
	return nil
}

// integer is a node's integer type; ok is false for any other type.
func integer(n parquet.Node) (bits int8, signed, ok bool) {
	if !n.Leaf() {
		return 0, false, false
	}
	kind := n.Type().Kind()
	if kind != parquet.Int32 && kind != parquet.Int64 {
		return 0, false, false
	}
	switch t := logical(n).(type) {
	case nil:
		if kind == parquet.Int32 {
			return 32, true, true
		}
		return 64, true, true
	case *format.IntType:
		return t.BitWidth, t.IsSigned, true
	default:
		return 0, false, false
	}
}

// isList reports whether a group is a list, and returns its element.
func isList(n parquet.Node) (element parquet.Node, ok bool) {
	if n.Leaf() {
		return nil, false
	}
	if _, ok := logical(n).(*format.ListType); !ok || len(n.Fields()) != 1 || !n.Fields()[0].Repeated() {
		return nil, false
	}
	middle := n.Fields()[0]
	if middle.Leaf() || len(middle.Fields()) != 1 {
		return middle, true // an old list of two levels
	}
	return middle.Fields()[0], true
}

// typeName spells a node's type as data people do.
func typeName(n parquet.Node) string {
	if element, ok := isList(n); ok && element.Repeated() {
		return typeName(element) // it says that it is a list
	} else if ok {
		return "list<" + typeName(element) + ">"
	}
	name := ""
	switch {
	case !n.Leaf():
		if _, ok := logical(n).(*format.MapType); ok && len(n.Fields()) == 1 && len(n.Fields()[0].Fields()) == 2 {
			kv := n.Fields()[0].Fields()
			return "map<" + typeName(kv[0]) + ", " + typeName(kv[1]) + ">"
		}
		parts := []string{}
		for _, f := range n.Fields() {
			parts = append(parts, f.Name()+": "+typeName(f))
		}
		name = "struct<" + strings.Join(parts, ", ") + ">"
	default:
		name = leafName(n)
	}
	if n.Repeated() {
		return "list<" + name + ">"
	}
	return name
}

func leafName(n parquet.Node) string {
	if isNull(n) {
		return "null"
	}
	if bits, signed, ok := integer(n); ok {
		if signed {
			return fmt.Sprintf("int%d", bits)
		}
		return fmt.Sprintf("uint%d", bits)
	}
	switch t := logical(n).(type) {
	case nil:
	case *format.StringType:
		return "string"
	case *format.UUIDType:
		return "uuid"
	case *format.DateType:
		return "date"
	default:
		return strings.ToLower(fmt.Sprint(t))
	}
	switch n.Type().Kind() {
	case parquet.Boolean:
		return "bool"
	case parquet.Int96:
		return "int96 timestamp"
	case parquet.Float:
		return "float"
	case parquet.Double:
		return "double"
	case parquet.FixedLenByteArray:
		return fmt.Sprintf("fixed binary of %d bytes", n.Type().Length())
	default:
		return "binary"
	}
}
