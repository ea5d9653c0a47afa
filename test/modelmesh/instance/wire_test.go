package instance

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

func TestExtractAndInjectModelName(t *testing.T) {
	request := &meshpb.SetVModelRequest{VModelId: "digits", TargetModelId: "digits__ksp-1", LoadNow: true, ModelInfo: &meshpb.ModelInfo{Type: "mt:sklearn", Path: "p"}}
	message, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  []uint32
		value string
		set   func(*meshpb.SetVModelRequest, string)
	}{
		{[]uint32{1}, "digits", func(r *meshpb.SetVModelRequest, s string) { r.VModelId = s }},
		{[]uint32{4, 1}, "mt:sklearn", func(r *meshpb.SetVModelRequest, s string) { r.ModelInfo.Type = s }},
		{[]uint32{10}, "", func(r *meshpb.SetVModelRequest, s string) { r.Owner = s }},
	} {
		if got, err := extract(message, c.path); err != nil || got != c.value {
			t.Errorf("at %v: %q, %v; want %q", c.path, got, err, c.value)
		}
		changed, err := inject(message, c.path, "other")
		if err != nil {
			t.Fatal(err)
		}
		got, want := &meshpb.SetVModelRequest{}, proto.CloneOf(request)
		c.set(want, "other")
		if err := proto.Unmarshal(changed, got); err != nil || !proto.Equal(got, want) {
			t.Errorf("at %v: %v, %v; want %v", c.path, got, err, want)
		}
	}
	if _, err := extract(message[:len(message)-1], []uint32{1}); err == nil {
		t.Error("got no error for a truncated message")
	}
}
