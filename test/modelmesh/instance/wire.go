package instance

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of messages that are known
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// frame is a message that is forwarded unchanged.
type frame []byte

// codec does not encode frames; it encodes other messages like the codec of gRPC.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		return mem.BufferSlice{mem.SliceBuffer(*f)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		*f = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// split returns the value of a field and the remaining fields of the message.
func split(message []byte, number protowire.Number) (value, rest []byte, err error) {
	for len(message) > 0 {
		found, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, nil, fmt.Errorf("reading a message: %w", protowire.ParseError(tag))
		}
		size := protowire.ConsumeFieldValue(found, kind, message[tag:])
		if size < 0 {
			return nil, nil, fmt.Errorf("reading a message: %w", protowire.ParseError(size))
		}
		if found == number && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[tag:])
		} else {
			rest = append(rest, message[:tag+size]...)
		}
		message = message[tag+size:]
	}
	return value, rest, nil
}

// extract returns the value of a text field, given as a path of field numbers.
func extract(message []byte, path []uint32) (string, error) {
	if len(path) == 0 {
		return "", errors.New("the method has no path to the name of the model")
	}
	for _, number := range path {
		value, _, err := split(message, protowire.Number(number))
		if err != nil {
			return "", err
		}
		message = value
	}
	return string(message), nil
}

// inject returns a copy of the message with a new value of a text field, given as a path of field numbers.
func inject(message []byte, path []uint32, text string) ([]byte, error) {
	if len(path) == 0 {
		return []byte(text), nil
	}
	number := protowire.Number(path[0])
	value, rest, err := split(message, number)
	if err != nil {
		return nil, err
	}
	if value, err = inject(value, path[1:], text); err != nil {
		return nil, err
	}
	return protowire.AppendBytes(protowire.AppendTag(rest, number, protowire.BytesType), value), nil
}
