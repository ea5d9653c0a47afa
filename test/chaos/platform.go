package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// runPlatform runs faults on the platform resources. A manager with the component platform replaces the default manager for this
// scenario.
func (c *campaign) runPlatform(ctx context.Context) (err error) {
	if err := c.manager.Stop(ctx); err != nil {
		return err
	}
	original := c.manager
	defer func() {
		err = errors.Join(err, c.depopulate(ctx))
		if c.manager != original {
			err = errors.Join(err, c.manager.Kill(ctx))
		}
		c.manager, c.subjects = original, subjects
		err = errors.Join(err, c.restart(ctx), c.waitIdle(ctx))
	}()
	withPlatform, err := c.startManager(ctx, "platform", "--kubeconfig="+c.proxiedKubeconfig, "--enable-platform", fmt.Sprintf("--webhook-port=%d", c.installed.WebhookPort))
	if err != nil {
		return err
	}
	c.manager, c.subjects = withPlatform, platformSubjects
	if err := c.runCrashes(ctx); err != nil {
		return err
	}
	if err := c.timeTravel(ctx, "past-deleted-aihub", "aihub", "aihubs", true); err != nil {
		return err
	}
	// The MLflow requires its MLflowOperator.
	mlflow, err := subjectNamed("mlflow")
	if err != nil {
		return err
	}
	c.subjects = slices.Concat(platformSubjects, []subject{mlflow})
	kill := disturbance{name: "platform-kill", fault: "kill -9 with the component platform, back after 2 s", injections: []string{"PodKill"}, duration: downTime, bound: restarted,
		begin: func(ctx context.Context) (func(context.Context) error, error) { return c.restart, c.manager.Kill(ctx) }}
	storm := disturbance{name: "platform-storm", fault: "a tenth each of 500, 409, reset, and a lost response, with the component platform", injections: []string{"ClientFault"},
		duration: stormTime, bound: slow, proxied: true, begin: c.withRules(
			rule{share: 0.1, fault: respond(500)}, rule{match: match{writes: true}, share: 0.1, fault: respond(409)}, rule{share: 0.1, fault: resetConnection},
			rule{match: match{writes: true}, share: 0.1, fault: executeThen(resetConnection)})}
	return errors.Join(c.disturb(ctx, kill), c.disturb(ctx, storm))
}
