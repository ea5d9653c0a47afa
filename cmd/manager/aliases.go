package main

import (
	"context"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
)

// word is a sub-command of the program of model registries that this one takes the place of: run, with other defaults.
type word struct {
	name, help string
	// components run unless --components, --enable-<name> or their like say otherwise.
	components []string
}

// words are the sub-commands of the original. Its aihub ran the two others as programs of their own; here they are components.
var words = []word{
	{"modelregistry", "run model registries only, as the older program of that name did", []string{modelregistry.ComponentName}},
	{"catalog", "run the model catalog only, as the older program of that name did", []string{modelcatalog.ComponentName}},
	{"aihub", "run what the older program of that name brought about: AIHub, registries and the catalog",
		[]string{platform.ComponentName, modelregistry.ComponentName, modelcatalog.ComponentName}},
}

// originalDefaults are the defaults of flags that the sub-commands of the original had and that make a difference.
var originalDefaults = map[string]string{"metrics-bind-address": ":8443"}

// command is the sub-command that the word stands for.
func (w word) command() command {
	return command{w.name, w.help, func(ctx context.Context, p process) error {
		p.selection, p.defaults = w.components, originalDefaults
		return runManager(ctx, p)
	}}
}
