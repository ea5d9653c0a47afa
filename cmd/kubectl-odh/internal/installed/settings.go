package installed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// anyVersion stands for the release of MLflow that the manager's build supports, which the Deployment does not tell.
const anyVersion = "0.0.0"

// Settings are what a manager runs with, as far as its Deployment tells.
type Settings struct {
	// Known tells whether they could be read; Problem says why not, or what the manager would say of them.
	Known   bool
	Problem string
	Config  config.Config
	// Unread are settings that stand where they could not be read, so that Config has their defaults.
	Unread []Unread
}

// Unread is a setting that could not be read.
type Unread struct {
	// Variable of the manager, empty for all that the object may set.
	Variable string
	// Kind, Namespace and Name are those of the object where it stands.
	Kind, Namespace, Name string
}

// String names the setting and where it stands.
func (u Unread) String() string {
	return cmp.Or(u.Variable, "whatever variables there are") + " in " + u.Kind + " " + u.Namespace + "/" + u.Name
}

// Unreadable is a sentence about the settings that could not be read; empty when all could.
func (s Settings) Unreadable() string {
	if len(s.Unread) == 0 {
		return ""
	}
	var names []string
	for _, u := range s.Unread {
		names = append(names, u.String())
	}
	return "settings of the manager that could not be read count as their defaults: " + strings.Join(names, ", ")
}

// readSettings reads the settings as the manager does. Secrets are not read.
func readSettings(ctx context.Context, reader fetch.Reader, set served.Set, d *appsv1.Deployment, gaps *fetch.Gaps) Settings {
	c := managerContainer(d)
	if c == nil {
		return Settings{Problem: fmt.Sprintf("the Deployment has no container %q", container)}
	}
	w := &podWorld{
		ctx: ctx, reader: reader, set: set, gaps: gaps, namespace: d.Namespace, pod: &d.Spec.Template.Spec,
		maps: map[string]map[string]string{}, hidden: map[string]bool{},
	}
	environment, unread := w.environment(c)
	asked := map[string]bool{}
	lookup := func(name string) (string, bool) {
		asked[name] = true
		value, found := environment[name]
		return value, found
	}
	loaded, err := config.Load(config.Program{Components: ours.Names(), MLflowVersion: anyVersion}, arguments(c), lookup, w.file(c))
	// What is no setting of the manager does not matter.
	unread = slices.DeleteFunc(unread, func(u Unread) bool { return u.Variable != "" && !asked[u.Variable] })
	if err != nil {
		return Settings{Problem: err.Error(), Unread: unread}
	}
	return Settings{Known: true, Config: loaded, Unread: unread}
}

// arguments of the manager, without the word for its default sub-command.
func arguments(c *corev1.Container) []string {
	args := c.Args
	if len(c.Command) > 1 {
		args = append(append([]string{}, c.Command[1:]...), args...)
	}
	if len(args) > 0 && args[0] == "run" {
		return args[1:]
	}
	return args
}

// podWorld is what a container of a pod sees.
type podWorld struct {
	ctx       context.Context
	reader    fetch.Reader
	set       served.Set
	gaps      *fetch.Gaps
	namespace string
	pod       *corev1.PodSpec
	maps      map[string]map[string]string
	// hidden are the ConfigMaps among maps that could not be read.
	hidden map[string]bool
}

// configMap returns the texts of a ConfigMap; none when it is not there or cannot be read, which hidden then tells.
func (w *podWorld) configMap(name string) map[string]string {
	if known, ok := w.maps[name]; ok {
		return known
	}
	w.maps[name] = nil
	kind, ok := w.set.Kind("", "ConfigMap")
	if !ok {
		return nil
	}
	u, err := w.reader.Get(w.ctx, kind, w.namespace, name)
	if w.gaps.Note("ConfigMap "+w.namespace+"/"+name, err) {
		w.maps[name], _, _ = unstructured.NestedStringMap(u.Object, "data")
	}
	w.hidden[name] = err != nil && !apierrors.IsNotFound(err)
	return w.maps[name]
}

// environment of a container, and the variables that could not be read: of variables that refer to others only the text is known, and
// of Secrets nothing.
func (w *podWorld) environment(c *corev1.Container) (map[string]string, []Unread) {
	all, unread := map[string]string{}, []Unread(nil)
	miss := func(variable, kind, name string) {
		unread = append(unread, Unread{variable, kind, w.namespace, name})
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			miss("", "Secret", from.SecretRef.Name)
		}
		if from.ConfigMapRef == nil {
			continue
		}
		for name, value := range w.configMap(from.ConfigMapRef.Name) {
			all[from.Prefix+name] = value
		}
		if w.hidden[from.ConfigMapRef.Name] {
			miss("", "ConfigMap", from.ConfigMapRef.Name)
		}
	}
	for _, variable := range c.Env {
		source := variable.ValueFrom
		switch {
		case source == nil:
			all[variable.Name] = variable.Value
		case source.ConfigMapKeyRef != nil:
			if value, found := w.configMap(source.ConfigMapKeyRef.Name)[source.ConfigMapKeyRef.Key]; found {
				all[variable.Name] = value
			} else if w.hidden[source.ConfigMapKeyRef.Name] {
				miss(variable.Name, "ConfigMap", source.ConfigMapKeyRef.Name)
			}
		case source.SecretKeyRef != nil:
			miss(variable.Name, "Secret", source.SecretKeyRef.Name)
		case source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace":
			all[variable.Name] = w.namespace
		}
	}
	return all, unread
}

// file reads the files that ConfigMaps put into a container.
func (w *podWorld) file(c *corev1.Container) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for _, mount := range c.VolumeMounts {
			below, inside := strings.CutPrefix(path.Clean(name), path.Clean(mount.MountPath))
			if !inside {
				continue
			}
			key := strings.TrimPrefix(below, "/")
			if mount.SubPath != "" {
				key = path.Join(mount.SubPath, key)
			}
			if content, found := w.mounted(mount.Name, key); found {
				return []byte(content), nil
			}
			if why := w.unreadable(mount.Name); why != "" {
				return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New(why)}
			}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

// unreadable says why the files of a volume cannot be read; "" when they can.
func (w *podWorld) unreadable(volume string) string {
	for _, v := range w.pod.Volumes {
		switch {
		case v.Name != volume:
		case v.ConfigMap != nil && w.hidden[v.ConfigMap.Name]:
			return "it lies in ConfigMap " + w.namespace + "/" + v.ConfigMap.Name + ", which could not be read"
		case v.Secret != nil:
			return "it lies in Secret " + w.namespace + "/" + v.Secret.SecretName + ", and Secrets are not read"
		}
	}
	return ""
}

// mounted returns a file of a volume that a ConfigMap fills.
func (w *podWorld) mounted(volume, file string) (string, bool) {
	for _, v := range w.pod.Volumes {
		if v.Name != volume || v.ConfigMap == nil {
			continue
		}
		key := file
		for _, item := range v.ConfigMap.Items {
			if item.Path == file {
				key = item.Key
			}
		}
		content, found := w.configMap(v.ConfigMap.Name)[key]
		return content, found
	}
	return "", false
}
