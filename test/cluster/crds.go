package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	crdPoll    = 100 * time.Millisecond
	crdTimeout = 3 * time.Minute
)

var (
	//go:embed group.yaml
	groupCRD []byte
	//go:embed auth.yaml
	authCRD []byte
	//go:embed template.yaml
	templateCRD []byte
)

// localCRDs are the CRDs that are not files of a module.
var localCRDs = map[string][]byte{
	"groups.user.openshift.io":               groupCRD,
	"auths.services.platform.opendatahub.io": authCRD,
	"templates.template.openshift.io":        templateCRD,
}

// InstallPlatform serves the third-party APIs of a platform and creates the configuration objects that every cluster of that platform
// has. It does not change existing objects.
func InstallPlatform(ctx context.Context, config *rest.Config, platform Platform) error {
	if err := platform.validate(); err != nil {
		return err
	}
	if err := InstallSet(ctx, config, platformSets[platform]...); err != nil {
		return err
	}
	return configure(ctx, config, platform)
}

// InstallSet installs sets of CRDs and returns when all of them are served.
func InstallSet(ctx context.Context, config *rest.Config, sets ...Set) error {
	crds, err := ReadSet(ctx, sets...)
	if err != nil {
		return err
	}
	return InstallCRDs(ctx, config, crds...)
}

// ReadSet returns the CRDs of sets, sorted by name within each set.
func ReadSet(ctx context.Context, sets ...Set) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	dirs, err := setDirs(ctx, sets)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		for _, name := range slices.Sorted(maps.Keys(sources[set].crds)) {
			crd, err := readCRD(dirs, set, name)
			if err != nil {
				return nil, err
			}
			crds = append(crds, crd)
		}
	}
	return crds, nil
}

// InstallCRD installs one CRD of any set by its name, for example `servicemonitors.monitoring.coreos.com`.
func InstallCRD(ctx context.Context, config *rest.Config, name string) error {
	set, err := setOf(name)
	if err != nil {
		return err
	}
	dirs, err := setDirs(ctx, []Set{set})
	if err != nil {
		return err
	}
	crd, err := readCRD(dirs, set, name)
	if err != nil {
		return err
	}
	return InstallCRDs(ctx, config, crd)
}

// RemoveCRD deletes a CRD with all its objects and returns when the CRD no longer exists. It returns nil if there is no such CRD.
func RemoveCRD(ctx context.Context, config *rest.Config, name string) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if err := client.CustomResourceDefinitions().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting CustomResourceDefinition %s: %w", name, err)
	}
	err = wait.PollUntilContextTimeout(ctx, crdPoll, crdTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for CustomResourceDefinition %s to be deleted: %w", name, err)
	}
	return nil
}

// InstallCRDs creates missing CRDs in parallel and waits until all CRDs are served. It uses create, because server-side apply of a large
// CRD costs the API server seconds. It does not try to create existing CRDs, because the API server would validate them again.
func InstallCRDs(ctx context.Context, config *rest.Config, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	err = forEachCRD(crds, func(crd *apiextensionsv1.CustomResourceDefinition) error {
		var last error
		// Under load, some requests to an API server that has just started time out.
		err := wait.PollUntilContextTimeout(ctx, crdPoll, crdTimeout, true, func(ctx context.Context) (bool, error) {
			if _, last = client.CustomResourceDefinitions().Get(ctx, crd.Name, metav1.GetOptions{}); apierrors.IsNotFound(last) {
				_, last = client.CustomResourceDefinitions().Create(ctx, crd, metav1.CreateOptions{})
			}
			return !apierrors.IsTimeout(last) && !apierrors.IsServerTimeout(last) && !apierrors.IsTooManyRequests(last), nil
		})
		if err = errors.Join(err, last); last != nil && !apierrors.IsAlreadyExists(last) {
			return fmt.Errorf("creating CustomResourceDefinition %s: %w", crd.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return waitCRDs(ctx, config, crds...)
}

// forEachCRD calls handle for all CRDs in parallel.
func forEachCRD(crds []*apiextensionsv1.CustomResourceDefinition, handle func(*apiextensionsv1.CustomResourceDefinition) error) error {
	errs := make([]error, len(crds))
	var group sync.WaitGroup
	for index, crd := range crds {
		group.Go(func() { errs[index] = handle(crd) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// waitCRDs waits until the objects of each CRD can be listed.
func waitCRDs(ctx context.Context, config *rest.Config, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	reader, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return forEachCRD(crds, func(crd *apiextensionsv1.CustomResourceDefinition) error {
		err := wait.PollUntilContextTimeout(ctx, crdPoll, crdTimeout, true, func(ctx context.Context) (bool, error) {
			return responds(ctx, reader, crd), nil
		})
		if err == nil {
			return nil
		}
		live, getErr := client.CustomResourceDefinitions().Get(context.WithoutCancel(ctx), crd.Name, metav1.GetOptions{})
		if getErr != nil {
			return fmt.Errorf("waiting for CustomResourceDefinition %s to be served: %w", crd.Name, errors.Join(err, getErr))
		}
		return fmt.Errorf("waiting for CustomResourceDefinition %s to be served: %w; its conditions: %v", crd.Name, err, live.Status.Conditions)
	})
}

// responds reports whether every served version can be listed. It does not poll the condition Established, which becomes True a moment
// earlier, because reading a large CRD costs the API server more than listing objects.
func responds(ctx context.Context, reader dynamic.Interface, crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}
		if _, err := reader.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return false
		}
	}
	return true
}

// setDirs returns the folders of the modules of the sets, by path. A module without a version has that of the operator's go.mod.
func setDirs(ctx context.Context, sets []Set) (map[string]string, error) {
	if len(sets) == 0 {
		return nil, nil
	}
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	var modules []Module
	for _, set := range sets {
		s, ok := sources[set]
		if !ok {
			return nil, fmt.Errorf("unknown set of CRDs %q", set)
		}
		modules = append(modules, s.module)
	}
	return moduleDirs(ctx, root, modules)
}

func readCRD(dirs map[string]string, set Set, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	content := localCRDs[name]
	if file := sources[set].crds[name]; file != "" {
		var err error
		if content, err = os.ReadFile(filepath.Join(dirs[sources[set].module.Path], file)); err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(content, crd); err != nil {
		return nil, fmt.Errorf("decoding CustomResourceDefinition %s: %w", name, err)
	}
	if crd.Name != name {
		return nil, fmt.Errorf("decoding CustomResourceDefinition %s: the file contains %q", name, crd.Name)
	}
	// The conversion webhook is not running, and tests use a single version.
	crd.Spec.Conversion = nil
	return crd, nil
}
