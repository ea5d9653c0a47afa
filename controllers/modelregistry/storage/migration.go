package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

const (
	// crdName is the definition whose objects are moved.
	crdName = "modelregistries.modelregistry.opendatahub.io"
	// retryMin and retryMax bound the pauses after a failed pass; the conversion webhook needs a moment after the start.
	retryMin, retryMax = time.Second, 10 * time.Minute
	// poll is how often a migrator of the cluster is asked how far it is.
	poll = 10 * time.Second
)

// Options of a Migration. All are required.
type Options struct {
	// Reader reads without a cache.
	Reader client.Reader
	// Client writes, and knows which kinds are served.
	Client client.Client
	Clock  clock.Clock
	Log    logr.Logger
	// Source and Target are versions of ModelRegistry. Equal ones, or empty ones, mean that nothing is moved.
	Source, Target string
}

// Migration moves stored objects. It is a manager Runnable that runs in the elected replica.
type Migration struct {
	Options
	// started is the uid of the migration of the cluster's migrator that was created here; others may have ended before
	// the storage version changed.
	started types.UID
	// refused says that the migrator of the cluster failed, or that nobody runs it.
	refused bool
}

// New returns a Migration that does nothing before Start.
func New(o Options) *Migration { return &Migration{Options: o} }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (m *Migration) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It returns when ctx ends and never with an error: what fails is tried again, since
// nothing but the removal of an old version waits for it.
func (m *Migration) Start(ctx context.Context) error {
	var failures time.Duration
	for m.Source != m.Target && m.Source != "" && m.Target != "" && ctx.Err() == nil {
		done, err := m.pass(ctx)
		if done {
			break
		}
		pause := poll
		if err != nil {
			failures = min(max(2*failures, retryMin), retryMax)
			pause = failures
			m.Log.Error(err, "Moving stored ModelRegistry objects failed and will be tried again", "after", pause)
		}
		timer := m.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C():
		}
	}
	<-ctx.Done()
	return nil
}

// pass does what can be done now, and reports whether nothing is left.
func (m *Migration) pass(ctx context.Context) (done bool, err error) {
	crd, err := m.definition(ctx)
	if err != nil || crd == nil {
		return err == nil, err
	}
	moved, err := m.move(ctx)
	if err != nil || !moved {
		return false, err
	}
	err = m.trim(ctx)
	return err == nil, err
}

// move moves the objects, and reports whether all are moved.
func (m *Migration) move(ctx context.Context) (bool, error) {
	if !m.refused {
		state, err := m.delegate(ctx)
		if err != nil {
			m.Log.Info("The storage migrator of the cluster cannot be used", "reason", err.Error())
		}
		if err == nil && state != unsupported {
			return state == succeeded, nil
		}
		m.refused = true
	}
	return true, m.rewrite(ctx)
}

// definition returns the CRD if objects may be stored in the source version, else nil. It returns an error while they would
// be written back in that version.
func (m *Migration) definition(ctx context.Context) (*unstructured.Unstructured, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(certs.Conversion)
	err := m.Reader.Get(ctx, types.NamespacedName{Name: crdName}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", crdName, err)
	}
	if !slices.Contains(storedVersions(crd), m.Source) {
		return nil, nil
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if fields["storage"] == true && fields["name"] != m.Target {
			return nil, fmt.Errorf("CustomResourceDefinition %s stores %v and not %s: apply the one that comes with this program",
				crdName, fields["name"], m.Target)
		}
	}
	return crd, nil
}

func storedVersions(crd *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return versions
}

// trim removes the source version from the list of stored ones, unless the definition changed meanwhile.
func (m *Migration) trim(ctx context.Context) error {
	crd, err := m.definition(ctx)
	if err != nil || crd == nil {
		return err
	}
	left := slices.DeleteFunc(storedVersions(crd), func(v string) bool { return v == m.Source })
	if len(left) == 0 { // nothing was ever written since the storage version changed
		left = []string{m.Target}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.GetResourceVersion()},
		"status":   map[string]any{"storedVersions": left},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	if err := m.Client.Status().Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("removing %s from status.storedVersions of CustomResourceDefinition %s: %w", m.Source, crdName, err)
	}
	m.Log.Info("Stored objects are moved", "kind", v1beta1.Kind, "from", m.Source, "to", m.Target)
	return nil
}
