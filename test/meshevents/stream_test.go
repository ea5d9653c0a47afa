package meshevents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	meshevents "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/events"
)

const vmodelsPrefix = "root/mm_ns/fraud/mm/mesh/vmodels/"

func predictor(name string) meshevents.Event {
	return meshevents.Event{Source: "ksp", Namespace: "fraud", Name: name}
}

func inferenceService(name string) meshevents.Event {
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

// startWatchingStream returns a stream that has listed the vmodels and reported the one named first.
func startWatchingStream(t *testing.T, e *etcd) *stream {
	t.Helper()
	put(t, e.client("", ""), vmodelsPrefix+"first", `{}`)
	s := startStream(t)
	s.Ensure("fraud", "mesh")
	must(t, s.Connect(e.secret("", "")))
	s.expect(t, predictor("first"))
	return s
}

// Only keys of namespaces that the stream watches are reported.
func TestStreamReportsChangedKeys(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	s := startWatchingStream(t, e)
	put(t, c, vmodelsPrefix+"digits", `{"o":"isvc","amid":"digits__isvc-6b2eb0b8bf"}`)
	s.expect(t, inferenceService("digits"))
	put(t, c, "root/mm_ns/fraud/mm/mesh/registry/cats__ksp-7702c1b55a", `{}`)
	s.expect(t, predictor("cats"))
	remove(t, c, vmodelsPrefix+"digits")
	s.expect(t, inferenceService("digits"))

	s.Forget("fraud")
	s.Ensure("sales", "mesh")
	put(t, c, "root/mm_ns/sales/mm/mesh/vmodels/other", `{}`)
	s.expect(t, meshevents.Event{Source: "ksp", Namespace: "sales", Name: "other"})
	put(t, c, vmodelsPrefix+"unseen", `{}`)
	put(t, c, "root/mm_ns/sales/mm/mesh/vmodels/later", `{}`)
	reported := s.expect(t, meshevents.Event{Source: "ksp", Namespace: "sales", Name: "later"})
	if slices.Contains(reported, predictor("unseen")) {
		t.Errorf("got %v after Forget, want no event of the namespace fraud", reported)
	}
}

// [M32] Keys deleted while no watch was open are reported, even after a compaction of etcd.
func TestStreamReportsDeletionsBeforeCompaction(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	s := startWatchingStream(t, e)
	put(t, c, vmodelsPrefix+"deleted", `{"o":"isvc"}`)
	s.expect(t, inferenceService("deleted"))
	must(t, s.Connect(nil))
	remove(t, c, vmodelsPrefix+"deleted")
	put(t, c, vmodelsPrefix+"created", `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	response, err := c.Get(ctx, vmodelsPrefix+"created")
	must(t, err)
	_, err = c.Compact(ctx, response.Header.GetRevision(), clientv3.WithCompactPhysical())
	must(t, err)
	must(t, s.Connect(e.secret("", "")))
	s.expect(t, inferenceService("deleted"), predictor("created"))

	client, err := meshetcd.New(e.secret("", ""))
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	if err := client.Watch(ctx, vmodelsPrefix, 1, func([]meshetcd.Entry) {}); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("watch from a compacted revision: error %v, want ErrCompacted", err)
	}
}

// [M5] [M32] The stream continues after crashes of etcd. A namespace can be removed and added while etcd is down.
func TestStreamSurvivesEtcdCrash(t *testing.T) {
	e := startEtcd(t)
	s := startWatchingStream(t, e)
	for round := range 2 {
		e.kill()
		e.restart()
		name := fmt.Sprintf("after-%d", round)
		put(t, e.client("", ""), vmodelsPrefix+name, `{}`)
		s.expect(t, predictor(name))
	}
	e.kill()
	s.Forget("fraud") // [M5] cancels a watch while etcd is down
	s.Ensure("fraud", "mesh")
	e.restart()
	s.expect(t, predictor("first"), predictor("after-0"), predictor("after-1"))
}

// An etcd without a volume loses all data with its pod, and restarts its revisions at one.
func TestStreamReportsModelsAfterDataLoss(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	s := startWatchingStream(t, e)
	for i := range 50 {
		put(t, c, "unrelated", fmt.Sprint(i))
	}
	put(t, c, vmodelsPrefix+"lost", `{"o":"isvc"}`)
	s.expect(t, inferenceService("lost"))
	e.kill()
	e.replaceDataDir()
	e.restart()
	s.expect(t, predictor("first"), inferenceService("lost")) // their keys no longer exist
	put(t, e.client("", ""), vmodelsPrefix+"again", `{}`)
	s.expect(t, predictor("again"))
}

// A stream with a wrong password reports events once the Secret has the right one, and continues after a password change.
func TestStreamFollowsPasswordChange(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	put(t, c, vmodelsPrefix+"first", `{}`)
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
	e.kill() // invalidates the tokens of its clients
	e.restart()
	writer := e.client("root", "secret")
	put(t, writer, vmodelsPrefix+"second", `{}`)
	s.expect(t, predictor("second"))

	_, err = writer.UserChangePassword(ctx, "root", "rotated")
	must(t, err)
	must(t, s.Connect(e.secret("root", "rotated")))
	put(t, e.client("root", "rotated"), vmodelsPrefix+"third", `{}`)
	s.expect(t, predictor("third"))
}

func TestStreamReadsAllPages(t *testing.T) {
	e := startEtcd(t)
	c := e.client("", "")
	want := make([]meshevents.Event, 0, 2500)
	for i := 0; i < cap(want); i += 100 {
		var operations []clientv3.Op
		for n := i; n < i+100; n++ {
			name := fmt.Sprintf("model-%04d", n)
			operations = append(operations, clientv3.OpPut(vmodelsPrefix+name, `{}`))
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
