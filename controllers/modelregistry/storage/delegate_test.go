package storage

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	builtIn = schema.GroupVersion{Group: "storagemigration.k8s.io", Version: "v1beta1"}
	older   = schema.GroupVersion{Group: "migration.k8s.io", Version: "v1alpha1"}
)

func existing(gv schema.GroupVersion, label, condition string, age time.Duration) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(gv.WithKind(migratorKind))
	out.SetName(migrator)
	out.SetUID("older")
	out.SetLabels(map[string]string{managedBy: label})
	out.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-age)))
	conclude(out, condition)
	return out
}

func conclude(migration *unstructured.Unstructured, condition string) {
	if condition != "" {
		migration.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Running", "status": "False"},
			map[string]any{"type": condition, "status": "True", "message": "because"},
		}}
	}
}

// during lets something happen to the migration of the cluster while ours waits for it.
func (w *world) during(m *Migration, gv schema.GroupVersion, condition string) {
	w.t.Helper()
	w.run(m, 2*poll)
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(gv.WithKind(migratorKind))
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: migrator}, found); err != nil {
		w.t.Fatal(err)
	}
	w.mustHave("v1alpha1", "v1beta1") // nothing is trimmed before the end
	conclude(found, condition)
	if err := w.client.Update(w.t.Context(), found); err != nil {
		w.t.Fatal(err)
	}
	w.run(m, 2*poll)
}

func TestTheMigratorOfTheClusterDoesTheWork(t *testing.T) {
	for name, c := range map[string]struct {
		served []schema.GroupVersion
		used   schema.GroupVersion
		want   map[string]any
	}{
		"of Kubernetes":     {[]schema.GroupVersion{builtIn, older}, builtIn, map[string]any{"group": "modelregistry.opendatahub.io", "resource": "modelregistries"}},
		"of the older kind": {[]schema.GroupVersion{older}, older, map[string]any{"group": "modelregistry.opendatahub.io", "resource": "modelregistries", "version": "v1beta1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.served, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"))
				w.during(w.migration(), c.used, "Succeeded")
				w.mustHave("v1beta1")
				w.mustWrite("create "+migrator, "patch status of "+crdName)
				made := &unstructured.Unstructured{}
				made.SetGroupVersionKind(c.used.WithKind(migratorKind))
				if err := w.client.Get(t.Context(), types.NamespacedName{Name: migrator}, made); err != nil {
					t.Fatal(err)
				}
				resource, _, _ := unstructured.NestedMap(made.Object, "spec", "resource")
				if len(resource) != len(c.want) || resource["resource"] != c.want["resource"] || resource["version"] != c.want["version"] || resource["group"] != c.want["group"] {
					t.Errorf("%v", resource)
				}
				if made.GetLabels()["app.kubernetes.io/component"] != "storage-migration" || made.GetLabels()["app.kubernetes.io/name"] != manager {
					t.Errorf("%v", made.GetLabels())
				}
			})
		})
	}
}

// One that ended some day proves nothing about today, D29.
func TestAnEndedMigrationIsMadeAnew(t *testing.T) {
	for _, condition := range []string{"Succeeded", "Failed"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, []schema.GroupVersion{older}, crd("v1beta1", "v1alpha1", "v1beta1"), existing(older, manager, condition, 100*time.Hour))
			w.during(w.migration(), older, "Succeeded")
			w.mustWrite("delete "+migrator, "create "+migrator, "patch status of "+crdName)
			w.mustHave("v1beta1")
		})
	}
}

// One that the replica before us started is followed.
func TestARunningMigrationIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []schema.GroupVersion{builtIn}, crd("v1beta1", "v1alpha1", "v1beta1"), existing(builtIn, manager, "", time.Minute))
		w.during(w.migration(), builtIn, "Succeeded")
		w.mustWrite("patch status of " + crdName)
	})
}

func TestObjectsAreWrittenBackWhereTheMigratorDoesNot(t *testing.T) {
	written := []string{"patch a", "patch status of " + crdName}
	for name, c := range map[string]struct {
		existing func() *unstructured.Unstructured // in the time of the test
		fails    string
		want     []string
	}{
		"somebody else's":     {func() *unstructured.Unstructured { return existing(older, "somebody", "Succeeded", 0) }, "", written},
		"one that never ends": {func() *unstructured.Unstructured { return existing(older, manager, "", time.Hour) }, "", written},
		"no right to read":    {func() *unstructured.Unstructured { return existing(older, manager, "", 0) }, "get " + migrator, written},
		"no right to create":  {nil, "create " + migrator, append([]string{"create " + migrator}, written...)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, []schema.GroupVersion{older}, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"))
				if c.existing != nil {
					w = newWorld(t, []schema.GroupVersion{older}, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), c.existing())
				}
				w.fails = func(request string) error {
					if request == c.fails {
						return errors.New("forbidden")
					}
					return nil
				}
				w.run(w.migration(), 10*patience)
				w.mustWrite(c.want...)
				w.mustHave("v1beta1")
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []schema.GroupVersion{older}, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"))
		w.during(w.migration(), older, "Failed")
		w.mustWrite("create "+migrator, "patch a", "patch status of "+crdName)
	})
}
