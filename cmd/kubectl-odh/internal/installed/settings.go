package installed

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
}

// readSettings reads the settings as the manager does. Secrets are not read.
func readSettings(ctx context.Context, reader fetch.Reader, set served.Set, d *appsv1.Deployment, gaps *fetch.Gaps) Settings {
	c := managerContainer(d)
	if c == nil {
		return Settings{Problem: fmt.Sprintf("the Deployment has no container %q", container)}
	}
	w := &podWorld{ctx: ctx, reader: reader, set: set, gaps: gaps, namespace: d.Namespace, pod: &d.Spec.Template.Spec, maps: map[string]map[string]string{}}
	environment := w.environment(c)
	lookup := func(name string) (string, bool) {
		value, found := environment[name]
		return value, found
	}
	loaded, err := config.Load(config.Program{Components: ours.Names(), MLflowVersion: anyVersion}, arguments(c), lookup, w.file(c))
	if err != nil {
		return Settings{Problem: err.Error()}
	}
	return Settings{Known: true, Config: loaded}
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
}

// configMap returns the texts of a ConfigMap; none when it is not there or may not be read.
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
	return w.maps[name]
}

// environment of a container. Of variables that refer to others only the text is known, and of Secrets nothing.
func (w *podWorld) environment(c *corev1.Container) map[string]string {
	all := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			continue
		}
		for name, value := range w.configMap(from.ConfigMapRef.Name) {
			all[from.Prefix+name] = value
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
			}
		case source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace":
			all[variable.Name] = w.namespace
		}
	}
	return all
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
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
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
