package modelmesh

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

const testConstraints = `{"_default":{"required":["_no_runtime"]},"mt:onnx":{"required":["mt:onnx"]}}`

var (
	first  = Instance{ID: "onnx-1", Labels: []string{"mt:onnx", "rt:triton"}}
	second = Instance{ID: "onnx-2", Labels: []string{"mt:onnx", "rt:triton"}}
)

func newLayer(t *testing.T, store Store, load Loader, running ...Instance) *Layer {
	t.Helper()
	l, err := NewLayer(LayerOptions{Namespace: "fraud", Store: store, Loader: load, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.SetConstraints([]byte(testConstraints)), l.SetInstances(t.Context(), running)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * startDelay)
	return l
}

func register(t *testing.T, l *Layer) {
	t.Helper()
	_, err := l.SetVModel(t.Context(), &meshpb.SetVModelRequest{
		VModelId: "digits", TargetModelId: "digits__ksp-1", Owner: "ksp", AutoDeleteTargetModel: true, LoadNow: true,
		ModelInfo: &meshpb.ModelInfo{Type: "mt:onnx", Path: "models/1", Key: `{"storage_key":"s3"}`},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stateOf returns the status of the active model and the locations of its copies, or the code of the error.
func stateOf(t *testing.T, l *Layer) string {
	t.Helper()
	synctest.Wait()
	response, err := l.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{VModelId: "digits", Owner: "ksp"})
	if err != nil {
		return status.Code(err).String()
	}
	words := []string{response.GetActiveModelStatus().GetStatus().String()}
	for _, c := range response.GetActiveModelStatus().GetModelCopyInfos() {
		words = append(words, c.GetLocation())
	}
	return strings.Join(words, " ")
}

func TestRemovedInstanceMigratesModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLayer(t, &Memory{}, ByPath, first)
		defer func() { _ = l.Close() }()
		register(t, l)
		if got := stateOf(t, l); got != "LOADED onnx-1" {
			t.Errorf("got state %s, want LOADED onnx-1", got)
		}
		if err := l.SetInstances(t.Context(), []Instance{first, second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := l.SetInstances(t.Context(), []Instance{second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := stateOf(t, l); got != "LOADED onnx-2" {
			t.Errorf("got state %s, want LOADED onnx-2: the model migrates from the removed instance", got)
		}
		if err := l.SetInstances(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := stateOf(t, l); got != "Unavailable" {
			t.Errorf("got state %s, want Unavailable", got)
		}
		if calls := l.Calls(); calls["setVModel"] != 1 || calls["getVModelStatus"] != 3 {
			t.Errorf("got calls %v, want 1 of setVModel and 3 of getVModelStatus", calls)
		}
	})
}

func TestRouteReturnsInstanceUntilModelIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLayer(t, &Memory{}, ByPath, first)
		defer func() { _ = l.Close() }()
		unloaded := make(chan Load, 2)
		l.options.Unload = func(_ context.Context, description Load) { unloaded <- description }
		register(t, l)
		if concrete, instance, err := l.At("").Route(t.Context(), "digits"); concrete != "digits__ksp-1" || instance != first.ID || err != nil {
			t.Errorf("got model %q on %q, error %v, want digits__ksp-1 on %q", concrete, instance, err, first.ID)
		}
		if _, err := l.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{VModelId: "digits", Owner: "ksp"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := (Load{Namespace: "fraud", ID: "digits__ksp-1", Instance: first.ID}); len(unloaded) != 1 || <-unloaded != want {
			t.Errorf("want one unload request %v", want)
		}
		if _, _, err := l.At("").Route(t.Context(), "digits"); status.Code(err) != codes.NotFound {
			t.Errorf("got error %v after the deletion, want NotFound", err)
		}
	})
}

func TestNewLayerContinuesFromStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &Memory{}
		gate := make(chan error)
		load := func(ctx context.Context, _ Load) error {
			select {
			case err := <-gate:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		existing := newLayer(t, store, load, first)
		register(t, existing)
		if err := existing.Close(); err != nil {
			t.Fatal(err)
		}
		next := newLayer(t, store, load, first)
		defer func() { _ = next.Close() }()
		if got := stateOf(t, next); got != "LOADING onnx-1" {
			t.Errorf("got state %s, want LOADING onnx-1", got)
		}
		gate <- nil
		if got := stateOf(t, next); got != "LOADED onnx-1" {
			t.Errorf("got state %s, want LOADED onnx-1", got)
		}
	})
}

func TestEtcdStore(t *testing.T) {
	realEtcd(t)
	data, err := SecretData(etcdURL, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	s, err := openEtcd(data, "modelmesh-serving")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, values := range []map[string][]byte{{"a/1": []byte("x"), "a/2": []byte("y")}, {"a/1": nil, "a/3": []byte("z")}} {
		if err := s.Commit(t.Context(), values); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.List(t.Context())
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(all)), []string{"a/2", "a/3"}) || string(all["a/3"]) != "z" {
		t.Errorf("List returned %v, error %v, want a/2 and a/3", all, err)
	}
	for key, want := range map[string]bool{"a/1": false, "a/2": true} {
		if got, err := s.Has(t.Context(), key); err != nil || got != want {
			t.Errorf("Has(%s) = %t, error %v, want %t", key, got, err, want)
		}
	}
	if _, err := openEtcd(map[string][]byte{"etcd_connection": []byte(`{"endpoints":"https://etcd:2379"}`)}, "x"); err == nil {
		t.Error("want an error for an etcd with TLS, which the fake does not support")
	}
}

func TestRuntimeMessage(t *testing.T) {
	for want, err := range map[string]error{
		"INVALID_ARGUMENT: x":   status.Error(codes.InvalidArgument, "x"),
		"RESOURCE_EXHAUSTED: x": status.Error(codes.ResourceExhausted, "x"),
		"INTERNAL: x":           errors.New("x"),
	} {
		if got := runtimeMessage(err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestByPath(t *testing.T) {
	for name, c := range map[string]struct {
		load Load
		want string
	}{
		"with a path":         {Load{Path: "sklearn/mnist", Key: `{"storage_key":"s3"}`}, ""},
		"without storage":     {Load{}, "Predictor Storage field missing"},
		"missing in path":     {Load{Path: "models/missing"}, "no objects found"},
		"invalid in path":     {Load{Path: "invalid-path/model"}, "no objects found"},
		"missing in a word":   {Load{Path: "admissing/model"}, ""},
		"only storage_key":    {Load{Key: `{"storage_key":"s3"}`}, ""},
		"only storage_params": {Load{Key: `{"storage_params":{"type":"s3"}}`}, ""},
	} {
		err := ByPath(t.Context(), c.load)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
}
