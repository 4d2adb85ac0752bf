package shard

import (
	"bytes"
	"encoding/base64"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// arrowSchema is the value of ARROW:schema: the Arrow schema of a shard as an
// encapsulated IPC message in base64. Its one purpose is to say that embedding
// is a fixed_size_list<float>[dim], which Parquet cannot; but the key covers all
// columns or none. It is "" if a kept column has a shape with no obvious Arrow
// type: readers then see embedding as a list, and that column as they see it in
// the corpus, which is better than a type that might be wrong.
func arrowSchema(root []parquet.Field, dim int) (string, error) {
	fields := make([]arrow.Field, len(root))
	for i, f := range root {
		if i == len(root)-1 {
			fields[i] = arrow.Field{Name: f.Name(), Type: arrow.FixedSizeListOfField(int32(dim),
				arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Float32})}
			continue
		}
		typ, ok := arrowType(f)
		if !ok {
			return "", nil
		}
		fields[i] = arrow.Field{Name: f.Name(), Type: typ, Nullable: f.Optional()}
	}
	payload := ipc.GetSchemaPayload(arrow.NewSchema(fields, nil), memory.DefaultAllocator)
	defer payload.Release()
	var b bytes.Buffer
	if _, err := payload.WritePayload(&b); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// arrowType is the Arrow type that readers give a node without being told; false
// where they differ among each other.
func arrowType(n parquet.Node) (arrow.DataType, bool) {
	if n.Repeated() {
		return nil, false // a list from before LIST
	}
	if n.Leaf() {
		return arrowLeaf(n.Type())
	}
	child := func(f parquet.Field) (arrow.Field, bool) {
		typ, ok := arrowType(f)
		return arrow.Field{Name: f.Name(), Type: typ, Nullable: f.Optional()}, ok
	}
	fields := n.Fields()
	switch logical(n.Type()).(type) {
	case *format.ListType:
		if len(fields) != 1 || !fields[0].Repeated() || fields[0].Leaf() || len(fields[0].Fields()) != 1 || fields[0].Name() == "array" {
			return nil, false // two-level lists and structs in the list's place
		}
		element, ok := child(fields[0].Fields()[0])
		if !ok {
			return nil, false
		}
		return arrow.ListOfField(element), true
	case *format.MapType:
		if len(fields) != 1 || !fields[0].Repeated() || fields[0].Leaf() || len(fields[0].Fields()) != 2 {
			return nil, false
		}
		k, kok := child(fields[0].Fields()[0])
		v, vok := child(fields[0].Fields()[1])
		if !kok || !vok || k.Nullable {
			return nil, false
		}
		return arrow.MapOfFields(k, v), true
	case nil:
		if len(fields) == 0 {
			return nil, false
		}
		of := make([]arrow.Field, len(fields))
		for i, f := range fields {
			var ok bool
			if of[i], ok = child(f); !ok {
				return nil, false
			}
		}
		return arrow.StructOf(of...), true
	default:
		return nil, false
	}
}

func arrowLeaf(t parquet.Type) (arrow.DataType, bool) {
	switch lt := logical(t).(type) {
	case *format.StringType, *format.EnumType: // pyarrow goes by the Parquet type and sees an enum as bytes
		return arrow.BinaryTypes.String, true
	case *format.DateType:
		return arrow.FixedWidthTypes.Date32, true
	case *format.NullType:
		return arrow.Null, true
	case *format.IntType:
		return arrowInt(lt)
	case *format.DecimalType:
		if lt.Precision <= 38 {
			return &arrow.Decimal128Type{Precision: lt.Precision, Scale: lt.Scale}, true
		}
		return &arrow.Decimal256Type{Precision: lt.Precision, Scale: lt.Scale}, lt.Precision <= 76
	case *format.TimeType:
		switch lt.Unit.Value.(type) {
		case *format.MilliSeconds:
			return arrow.FixedWidthTypes.Time32ms, true
		case *format.MicroSeconds:
			return arrow.FixedWidthTypes.Time64us, true
		case *format.NanoSeconds:
			return arrow.FixedWidthTypes.Time64ns, true
		}
		return nil, false
	case *format.TimestampType:
		of := &arrow.TimestampType{}
		if lt.IsAdjustedToUTC {
			of.TimeZone = "UTC"
		}
		switch lt.Unit.Value.(type) {
		case *format.MilliSeconds:
			of.Unit = arrow.Millisecond
		case *format.MicroSeconds:
			of.Unit = arrow.Microsecond
		case *format.NanoSeconds:
			of.Unit = arrow.Nanosecond
		default:
			return nil, false
		}
		return of, true
	case *format.UUIDType:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}, true
	case *format.BsonType, *format.JsonType:
		return arrow.BinaryTypes.Binary, true
	case nil:
		return arrowPhysical(t)
	default:
		return nil, false
	}
}

func arrowInt(t *format.IntType) (arrow.DataType, bool) {
	of := map[bool]map[int8]arrow.DataType{
		true: {8: arrow.PrimitiveTypes.Int8, 16: arrow.PrimitiveTypes.Int16,
			32: arrow.PrimitiveTypes.Int32, 64: arrow.PrimitiveTypes.Int64},
		false: {8: arrow.PrimitiveTypes.Uint8, 16: arrow.PrimitiveTypes.Uint16,
			32: arrow.PrimitiveTypes.Uint32, 64: arrow.PrimitiveTypes.Uint64},
	}[t.IsSigned][t.BitWidth]
	return of, of != nil
}

func arrowPhysical(t parquet.Type) (arrow.DataType, bool) {
	switch t.Kind() {
	case parquet.Boolean:
		return arrow.FixedWidthTypes.Boolean, true
	case parquet.Int32:
		return arrow.PrimitiveTypes.Int32, true
	case parquet.Int64:
		return arrow.PrimitiveTypes.Int64, true
	case parquet.Int96:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}, true
	case parquet.Float:
		return arrow.PrimitiveTypes.Float32, true
	case parquet.Double:
		return arrow.PrimitiveTypes.Float64, true
	case parquet.ByteArray:
		return arrow.BinaryTypes.Binary, true
	case parquet.FixedLenByteArray:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Length()}, true
	default:
		return nil, false
	}
}

func logical(t parquet.Type) format.LogicalTypeValue {
	if lt := t.LogicalType(); lt != nil {
		return lt.Value
	}
	return nil
}
