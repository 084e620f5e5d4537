<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** Each record is inserted into a template. */
final class TemplateFormat implements JobFormat
{
    public function __construct(private readonly CommandTemplate $template) {}

    public function usesSlot(): bool
    {
        return $this->template->usesSlot();
    }

    public function skips(string $record): bool
    {
        return false;
    }

    public function job(int $sequence, string $record, int $slot): InputJob
    {
        try {
            $command = $this->template->command($record, $sequence, $slot);
            $text = $this->usesSlot() ? $this->template->text($record, $sequence) : $command->toString();
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }

        return new InputJob($sequence, $record, $text, $command, $slot);
    }
}
