package meshevents

import (
	"context"
	"errors"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	meshevents "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/events"
)

const vmodels = "root/mm_ns/fraud/mm/mesh/vmodels/"

func predictor(name string) meshevents.Event {
	return meshevents.Event{Source: "ksp", Namespace: "fraud", Name: name}
}

func service(name string) meshevents.Event {
	return meshevents.Event{Source: "isvc", Namespace: "fraud", Name: name}
}

func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	_, err := c.Put(ctx, key, value)
	must(t, err)
}

func remove(t *testing.T, c *clientv3.Client, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	_, err := c.Delete(ctx, key)
	must(t, err)
}

// following returns a stream that has reported the vmodel `first` and is watching.
func following(t *testing.T, e *etcd) *stream {
	t.Helper()
	put(t, e.client("", ""), vmodels+"first", `{}`)
	s := startStream(t)
	s.Ensure("fraud", "mesh")
	must(t, s.Connect(e.secret("", "")))
	s.expect(t, predictor("first"))
	return s
}

func TestEventsOfRealKeys(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	s := following(t, e)
	put(t, c, vmodels+"digits", `{"o":"isvc","amid":"digits__isvc-6b2eb0b8bf"}`)
	s.expect(t, service("digits"))
	put(t, c, "root/mm_ns/fraud/mm/mesh/registry/cats__ksp-7702c1b55a", `{}`)
	s.expect(t, predictor("cats"))
	remove(t, c, vmodels+"digits")
	s.expect(t, service("digits"))

	s.Forget("fraud")
	put(t, c, vmodels+"unseen", `{}`)
	s.Ensure("sales", "mesh")
	put(t, c, "root/mm_ns/sales/mm/mesh/vmodels/other", `{}`)
	s.expect(t, meshevents.Event{Source: "ksp", Namespace: "sales", Name: "other"})
	if got := s.among(predictor("unseen")); len(got) != 0 {
		t.Errorf("reported %v of a namespace that is forgotten", got)
	}
}

// [M32] Keys deleted while no watch was open are reported, even after a compaction of etcd.
func TestWhatWentBeforeACompaction(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	s := following(t, e)
	put(t, c, vmodels+"goes", `{"o":"isvc"}`)
	s.expect(t, service("goes"))
	must(t, s.Connect(nil))
	remove(t, c, vmodels+"goes")
	put(t, c, vmodels+"comes", `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	answer, err := c.Get(ctx, vmodels+"comes")
	must(t, err)
	_, err = c.Compact(ctx, answer.Header.GetRevision(), clientv3.WithCompactPhysical())
	must(t, err)
	must(t, s.Connect(e.secret("", "")))
	s.expect(t, service("goes"), predictor("comes"))

	late, err := meshetcd.New(e.secret("", ""))
	must(t, err)
	t.Cleanup(func() { must(t, late.Close()) })
	if err := late.Watch(ctx, vmodels, 1, func([]meshetcd.Entry) {}); !errors.Is(err, meshetcd.ErrCompacted) {
		t.Errorf("error %v, want ErrCompacted", err)
	}
}

// [M5] [M32] A crash of etcd ends no stream.
func TestACrashOfEtcd(t *testing.T) {
	e := startEtcd(t)
	s := following(t, e)
	for round := range 2 {
		e.kill()
		e.restart()
		name := fmt.Sprintf("after-%d", round)
		put(t, e.client("", ""), vmodels+name, `{}`)
		s.expect(t, predictor(name))
	}
	e.kill()
	s.Forget("fraud") // [M5] while etcd is away
	s.Ensure("fraud", "mesh")
	e.restart()
	s.expect(t, predictor("first"), predictor("after-0"), predictor("after-1"))
}

// An etcd without a volume loses all data with its pod, and restarts its revisions at one.
func TestAnEtcdThatLostItsData(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	s := following(t, e)
	for i := range 50 {
		put(t, c, "elsewhere", fmt.Sprint(i))
	}
	put(t, c, vmodels+"lost", `{"o":"isvc"}`)
	s.expect(t, service("lost"))
	e.kill()
	e.lose()
	e.restart()
	s.expect(t, predictor("first"), service("lost")) // both are gone
	put(t, e.client("", ""), vmodels+"again", `{}`)
	s.expect(t, predictor("again"))
}

func TestPasswordsOfARealEtcd(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	put(t, c, vmodels+"first", `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	_, err := c.UserAdd(ctx, "root", "secret")
	must(t, err)
	_, err = c.UserGrantRole(ctx, "root", "root")
	must(t, err)
	_, err = c.AuthEnable(ctx)
	must(t, err)

	s := startStream(t)
	s.Ensure("fraud", "mesh")
	must(t, s.Connect(e.secret("root", "wrong")))
	must(t, s.Connect(e.secret("root", "secret")))
	s.expect(t, predictor("first"))
	e.kill() // and invalidate its tokens
	e.restart()
	writer := e.client("root", "secret")
	put(t, writer, vmodels+"second", `{}`)
	s.expect(t, predictor("second"))

	_, err = writer.UserChangePassword(ctx, "root", "rotated")
	must(t, err)
	must(t, s.Connect(e.secret("root", "rotated")))
	put(t, e.client("root", "rotated"), vmodels+"third", `{}`)
	s.expect(t, predictor("third"))
}

func TestMoreModelsThanOnePage(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	want := make([]meshevents.Event, 0, 2500)
	for i := 0; i < cap(want); i += 100 {
		var operations []clientv3.Op
		for n := i; n < i+100; n++ {
			name := fmt.Sprintf("model-%04d", n)
			operations = append(operations, clientv3.OpPut(vmodels+name, `{}`))
			want = append(want, predictor(name))
		}
		_, err := c.Txn(t.Context()).Then(operations...).Commit()
		must(t, err)
	}
	s := startStream(t)
	must(t, s.Connect(e.secret("", "")))
	s.Ensure("fraud", "mesh")
	s.expect(t, want...)
}
