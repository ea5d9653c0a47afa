package settings

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Source holds the settings of all namespaces as they are now. It is a manager Runnable that follows the ConfigMaps on every
// replica: a change takes effect without a restart. A change for the worse is reported by an Event on the ConfigMap and in the log,
// and the settings before it stay in force. It needs get, list and watch of ConfigMaps by the two names.
//
// Documents are laid over each other: what the program knows, the defaults (the ConfigMap, else the file), the images of the
// manager's environment, the ConfigMap of the administrators, and for a namespace its own ConfigMap.
type Source struct {
	listeners follow.Listeners[string] // called with the namespace whose settings may have changed; "" is all of them
	config    config.ModelMesh
	live      client.Reader
	teller    teller
	followers []*follow.Follower
	log       logr.Logger
	reading   sync.Mutex // held while the first reading asks the API server

	mu        sync.Mutex
	known     struct{ defaults, configs bool } // what has been read at all
	defaults  *document
	admin     *document
	overrides map[string]*document // by namespace
	state     state
}

// Options are what a Source is made of; all are required.
type Options struct {
	Config   config.ModelMesh
	Dynamic  dynamic.Interface
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.Clock
	Log      logr.Logger
}

// NewSource returns a Source that has read nothing yet.
func NewSource(o Options) *Source {
	s := &Source{config: o.Config, live: o.Live, log: o.Log, teller: teller{recorder: o.Recorder, log: o.Log}}
	own := o.Dynamic.Resource(configMaps).Namespace(o.Config.Namespace)
	configs := follow.Options{
		Client: o.Dynamic.Resource(configMaps), Resource: configMaps.GroupResource(), Name: ConfigMapName, Clock: o.Clock, Log: o.Log,
		TakeAll: s.followConfigs,
	}
	if o.Config.NamespaceScope {
		configs.Client = own
	}
	s.followers = []*follow.Follower{follow.New(configs), follow.New(follow.Options{
		Client: own, Resource: configMaps.GroupResource(), Name: DefaultsName, Clock: o.Clock, Log: o.Log, Take: s.followDefaults,
	})}
	return s
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standby replicas follow too.
func (s *Source) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns when ctx ends and never with an error.
func (s *Source) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, f := range s.followers {
		f.SetServed(true)
		all.Go(func() {
			if err := f.Start(ctx); err != nil {
				s.log.Error(err, "Following a ConfigMap has ended")
			}
		})
	}
	all.Wait()
	return nil
}

// Admin returns the settings of the administrators, which hold where no namespace says something for itself.
func (s *Source) Admin(ctx context.Context) (Settings, error) { return s.For(ctx, s.config.Namespace) }

// For returns the settings of a namespace as they are now. Before the first good reading it reads the ConfigMaps itself; an
// error of that names what is wrong and where, and there are no settings then: defaults could move what is served. A mistake in
// the ConfigMap of a namespace is no error: its settings before, or else those of the administrators, stay in force there.
func (s *Source) For(ctx context.Context, namespace string) (Settings, error) {
	if err := s.readOnce(ctx); err != nil {
		return Settings{}, err
	}
	s.mu.Lock()
	settings, said, err := s.resolve(namespace)
	s.mu.Unlock()
	s.teller.tell(said...)
	return settings, err
}

// resolve answers from what is known. The lock is held.
func (s *Source) resolve(namespace string) (Settings, []message, error) {
	if s.state.current == nil {
		return Settings{}, nil, s.state.trouble
	}
	override := s.overrides[namespace]
	if override == nil {
		return *s.state.current, nil, nil
	}
	settings, said := s.state.override(namespace, override)
	return settings, said, nil
}

// readOnce reads what the watches have not brought yet.
func (s *Source) readOnce(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	if !known.defaults {
		stored := &corev1.ConfigMap{}
		key := types.NamespacedName{Namespace: s.config.Namespace, Name: DefaultsName}
		switch err := s.live.Get(ctx, key, stored); {
		case apierrors.IsNotFound(err):
			stored = nil
		case err != nil:
			return fmt.Errorf("reading ConfigMap %s: %w", key, err)
		}
		s.takeDefaults(documentOf(stored), true)
	}
	if !known.configs {
		list := &corev1.ConfigMapList{}
		selection := []client.ListOption{client.MatchingFields{"metadata.name": ConfigMapName}}
		if s.config.NamespaceScope {
			selection = append(selection, client.InNamespace(s.config.Namespace))
		}
		if err := s.live.List(ctx, list, selection...); err != nil {
			return fmt.Errorf("reading ConfigMaps %s: %w", ConfigMapName, err)
		}
		var all []*document
		for i := range list.Items {
			all = append(all, documentOf(&list.Items[i]))
		}
		s.takeConfigs(all, true)
	}
	return nil
}

func (s *Source) followDefaults(object *unstructured.Unstructured) {
	s.takeDefaults(looseDocument(object), false)
}

func (s *Source) followConfigs(objects []*unstructured.Unstructured) {
	all := make([]*document, 0, len(objects))
	for _, object := range objects {
		all = append(all, looseDocument(object))
	}
	s.takeConfigs(all, false)
}

// takeDefaults takes the ConfigMap of defaults, nil for none. What a first reading asked for does not replace what a watch has
// brought meanwhile.
func (s *Source) takeDefaults(stored *document, first bool) {
	s.mu.Lock()
	begun := s.known.defaults
	if begun && (first || s.defaults.same(stored)) {
		s.mu.Unlock()
		return
	}
	s.known.defaults, s.defaults = true, stored
	changed, said := s.settle()
	s.mu.Unlock()
	s.announce(changed && !first, nil, said)
}

// takeConfigs takes the ConfigMaps of settings: that of the administrators, and those of namespaces.
func (s *Source) takeConfigs(all []*document, first bool) {
	s.mu.Lock()
	begun := s.known.configs
	if begun && first {
		s.mu.Unlock()
		return
	}
	s.known.configs = true
	var admin *document
	overrides := map[string]*document{}
	for _, one := range all {
		if one.Namespace == s.config.Namespace {
			admin = one
		} else {
			overrides[one.Namespace] = one
		}
	}
	moved := s.state.replace(s.overrides, overrides)
	s.overrides = overrides
	changed, said := false, []message(nil)
	if !begun || !s.admin.same(admin) {
		s.admin = admin
		changed, said = s.settle()
	}
	s.mu.Unlock()
	if first {
		changed, moved = false, nil // the caller gets the answer, and no other settings were in use before
	}
	s.announce(changed, moved, said)
}

// settle works out the settings of the administrators once both documents are known, and tells whether they have changed. The
// lock is held.
func (s *Source) settle() (changed bool, said []message) {
	if !s.known.defaults || !s.known.configs {
		return false, nil
	}
	return s.state.settle(s.config, s.defaults, s.admin)
}

// announce tells people what is wrong and wakes who watches: for everything where the administrators' settings have changed,
// else for the namespaces that have.
func (s *Source) announce(changed bool, moved map[string]bool, said []message) {
	s.teller.tell(said...)
	if changed {
		s.log.Info("The settings of ModelMesh have changed")
		s.listeners.Notify("")
		return
	}
	for namespace := range maps.Keys(moved) {
		s.listeners.Notify(namespace)
	}
}
