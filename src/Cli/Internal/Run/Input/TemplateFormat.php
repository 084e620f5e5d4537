<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** Each record is inserted into a template. */
final class TemplateFormat implements JobFormat
{
    public function __construct(private readonly CommandTemplate $template) {}

    public function isShellLine(): bool
    {
        return $this->template->isShellLine();
    }

    public function usesSlot(): bool
    {
        return $this->template->usesSlot();
    }

    public function skips(JobValues $values): bool
    {
        return false;
    }

    public function addsRecordsUnchanged(): bool
    {
        return $this->template->addsRecordsUnchanged();
    }

    public function baseSize(int $sequence, int $slot): array
    {
        return $this->template->baseSize($sequence, $slot);
    }

    public function addedSize(array $values, int $count, int $sequence, int $slot): array
    {
        return $this->template->addedSize($values, $count, $sequence, $slot);
    }

    public function job(int $sequence, JobValues $values, int $slot): InputJob
    {
        try {
            $joined = $values->joined();
            $command = $joined === null
                ? $this->template->command($values->list(), $sequence, $slot)
                : $this->template->joinedCommand($joined, $sequence, $slot);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }

        return new InputJob($sequence, $values, $command, $slot, template: $this->template);
    }
}
