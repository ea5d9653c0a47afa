package storage

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

const (
	migratorKind = "StorageVersionMigration"
	// patience with a migrator that may not run: its API can be served without it.
	patience = 5 * time.Minute
	// managedBy is the label of migrations that this program, or the one before it, made.
	managedBy, manager = "app.kubernetes.io/managed-by", "model-registry-operator"
)

// The APIs of migrators, the one of Kubernetes first.
var migrators = []string{"storagemigration.k8s.io", "migration.k8s.io"}

// state is how far the migrator of the cluster is.
type state int

const (
	unsupported state = iota // there is none
	running
	succeeded
)

// delegate lets the migrator of the cluster do the work. It returns an error when that fails, takes too long, or when an
// object that is not ours has the name.
func (m *Migration) delegate(ctx context.Context) (state, error) {
	for _, group := range migrators {
		mapping, err := m.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: migratorKind})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return unsupported, fmt.Errorf("finding the API %s: %w", group, err)
		}
		return m.follow(ctx, mapping.GroupVersionKind)
	}
	return unsupported, nil
}

// follow creates the migration or looks at it. One that ended before this process knew of it proves nothing, and is made anew.
func (m *Migration) follow(ctx context.Context, kind schema.GroupVersionKind) (state, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	err := m.Reader.Get(ctx, types.NamespacedName{Name: m.name()}, found)
	if apierrors.IsNotFound(err) {
		return m.create(ctx, kind)
	}
	if err != nil {
		return unsupported, fmt.Errorf("reading %s %s: %w", kind.Kind, m.name(), err)
	}
	if found.GetLabels()[managedBy] != manager {
		return unsupported, fmt.Errorf("%s %s exists and is not ours: remove it", kind.Kind, m.name())
	}
	ended, message := outcome(found)
	switch {
	case ended == "" && m.Clock.Since(found.GetCreationTimestamp().Time) > patience:
		return unsupported, fmt.Errorf("%s %s has not ended in %s", kind.Kind, m.name(), patience)
	case ended == "":
		m.started = found.GetUID()
		return running, nil
	case found.GetUID() != m.started:
		uid := found.GetUID()
		return running, client.IgnoreNotFound(m.Client.Delete(ctx, found, client.Preconditions{UID: &uid}))
	case ended == "Failed":
		return unsupported, fmt.Errorf("%s %s has failed: %s", kind.Kind, m.name(), message)
	default:
		return succeeded, nil
	}
}

// outcome returns Succeeded or Failed, and nothing while the migrator works.
func outcome(migration *unstructured.Unstructured) (ended, message string) {
	conditions, _, _ := unstructured.NestedSlice(migration.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		kind, _ := fields["type"].(string)
		if fields["status"] == "True" && (kind == "Succeeded" || kind == "Failed") {
			message, _ = fields["message"].(string)
			return kind, message
		}
	}
	return "", ""
}

func (m *Migration) create(ctx context.Context, kind schema.GroupVersionKind) (state, error) {
	resource := map[string]any{"group": v1beta1.GroupVersion.Group, "resource": "modelregistries"}
	if kind.Version == "v1alpha1" {
		resource["version"] = m.Target // newer ones move to whatever is stored
	}
	migration := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resource": resource}}}
	migration.SetGroupVersionKind(kind)
	migration.SetName(m.name())
	migration.SetLabels(map[string]string{
		"app.kubernetes.io/name": manager, "app.kubernetes.io/component": "storage-migration", managedBy: manager,
	})
	if err := m.Client.Create(ctx, migration); err != nil && !apierrors.IsAlreadyExists(err) {
		return unsupported, fmt.Errorf("creating %s %s: %w", kind.Kind, m.name(), err)
	}
	m.started = migration.GetUID()
	return running, nil
}

// name of the migration; it is the one that clusters know.
func (m *Migration) name() string {
	return "modelregistry-" + m.Source + "-to-" + m.Target + "-migration"
}
