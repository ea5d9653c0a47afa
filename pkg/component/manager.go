package component

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// managerOf is the manager as a supervised component sees it: what it adds runs in the component's group, and building
// the same controllers and indexes again is no error.
type managerOf struct {
	ctrl.Manager
	group    *group
	indexes  *indexes
	handlers *handlers
}

// GetCache returns the cache; the handlers on its informers end with the run of the component.
func (m *managerOf) GetCache() cache.Cache {
	return &cacheOf{Cache: m.Manager.GetCache(), handlers: m.handlers}
}

// GetClient returns the client; it reads only while the component runs.
func (m *managerOf) GetClient() client.Client {
	return &clientOf{Client: m.Manager.GetClient(), ctx: m.group.ctx}
}

// Add implements manager.Manager.
func (m *managerOf) Add(r manager.Runnable) error { return m.group.add(r) }

// GetControllerOptions allows a controller to have the name of the one that it follows.
func (m *managerOf) GetControllerOptions() config.Controller {
	options := m.Manager.GetControllerOptions()
	options.SkipNameValidation = new(true)
	return options
}

// GetFieldIndexer returns an indexer that takes an index again which an earlier run of the component added.
func (m *managerOf) GetFieldIndexer() client.FieldIndexer {
	return &indexer{FieldIndexer: m.Manager.GetFieldIndexer(), scheme: m.GetScheme(), known: m.indexes}
}

// indexKey tells an index by kind, representation and field.
type indexKey struct {
	kind           schema.GroupVersionKind
	representation reflect.Type
	field          string
}

// indexes remembers the index fields that a component added.
type indexes struct {
	mu   sync.Mutex
	done map[indexKey]bool
}

func newIndexes() *indexes { return &indexes{done: map[indexKey]bool{}} }

// first notes an index and reports whether it is new.
func (i *indexes) first(key indexKey) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.done[key]
	i.done[key] = true
	return !known
}

type indexer struct {
	client.FieldIndexer
	scheme *runtime.Scheme
	known  *indexes
}

// conflict is how the error of an informer begins that has an index of that name. It has no type.
const conflict = "indexer conflict"

// IndexField implements client.FieldIndexer. Informers of required kinds are new in each run, others live on and refuse
// to take an index twice.
func (i *indexer) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	kind, err := apiutil.GVKForObject(obj, i.scheme)
	if err != nil {
		return fmt.Errorf("indexing %s: %w", field, err)
	}
	err = i.FieldIndexer.IndexField(ctx, obj, field, extract)
	if err != nil && !strings.Contains(err.Error(), conflict) {
		return err
	}
	if i.known.first(indexKey{kind, reflect.TypeOf(obj), field}) {
		return err
	}
	return nil
}
