<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Psr\Log\LoggerInterface;
use Spindle\Http\Internal\Server\Checks;
use Spindle\Http\Response;

/** Responds to /healthz. Logs why checks fail. Clients do not get the reasons, which may contain internal addresses. */
final class Health
{
    /** @var array<string, string> reasons of the checks that failed at the last request, by name of the check */
    private array $failing = [];

    public function __construct(private readonly ServerOverview $overview, private readonly LoggerInterface $logger) {}

    public function answer(): Response
    {
        $readiness = $this->overview->readiness();
        if ($readiness->problem !== '') {
            return $this->unavailable($readiness->problem, []);
        }
        $failing = array_filter($readiness->checks, \is_string(...));
        $this->logChanges($failing);

        return $failing === []
            ? Response::text("ok\n", headers: ['Cache-Control' => 'no-store'])
            : $this->unavailable('failing', $readiness->checks);
    }

    /** @param array<string, string> $failing reasons by name */
    private function logChanges(array $failing): void
    {
        foreach (array_diff_assoc($failing, $this->failing) as $check => $reason) {
            $this->logger->warning('The check {check} fails: {reason}', ['check' => $check, 'reason' => $reason]);
        }
        foreach (array_keys(array_diff_key($this->failing, $failing)) as $check) {
            $this->logger->notice('The check {check} succeeds again', ['check' => $check]);
        }
        $this->failing = $failing;
    }

    /** @param array<string, string|null> $reasons */
    private function unavailable(string $status, array $reasons): Response
    {
        $states = array_map(static fn(?string $reason): string => match ($reason) {
            null => 'ok',
            Checks::LATE => 'late',
            default => 'failed',
        }, $reasons);

        return Response::json(
            ['status' => $status, 'checks' => (object) $states],
            503,
            ['Cache-Control' => 'no-store'],
        );
    }
}
